"""The made-up language, the nets that learn it, and what is measured of them."""

from itertools import pairwise

import pytest
import torch

from bertkit.base.errors import NonFiniteError
from bertkit.studies import agreement_nets
from bertkit.studies.agreement import (
    CLS_ID,
    FIRST_CUE,
    FIRST_FILLER,
    MARKER_ID,
    NUM_CUES,
    SEP_ID,
    VOCAB_SIZE,
    list_distances,
    longest_sequence,
    measuring_batch,
    training_batch,
)
from bertkit.studies.agreement_nets import (
    Sizes,
    build_net,
    count_parameters,
    measure_accuracy,
    measure_gradients,
    score,
    train,
)
from bertkit.training.job import Machine
from bertkit.training.settings import LoopSettings

CPU = torch.device("cpu")
KINDS = ("attention", "attention-both-ways", "lstm", "gru")


def test_the_answer_is_the_cue_behind_the_marker_at_its_distance():
    batch = measuring_batch(16, 50)
    for ids, label in zip(
        batch.packed.input_ids.split(batch.packed.lengths), batch.labels, strict=True
    ):
        words = ids.tolist()
        assert (words[0], words[-1], words.count(MARKER_ID)) == (CLS_ID, SEP_ID, 1)
        place = words.index(MARKER_ID) + 1
        assert words[place] == FIRST_CUE + int(label)
        assert len(words) - place - 2 == 16
    cues = batch.packed.input_ids[batch.cue_places]
    assert torch.equal(cues, FIRST_CUE + batch.labels)
    assert int(batch.packed.input_ids.max()) < VOCAB_SIZE
    ids = batch.packed.input_ids
    assert int(((ids >= FIRST_CUE) & (ids < FIRST_FILLER)).sum()) > 50  # lures among the fillers


def test_examples_are_a_pure_function_of_seed_and_step():
    one, again = (training_batch(3, 7, 20, 64) for _ in range(2))
    assert torch.equal(one.packed.input_ids, again.packed.input_ids)
    for other in (training_batch(3, 8, 20, 64), training_batch(4, 7, 20, 64)):
        assert one.packed.lengths != other.packed.lengths


def test_training_sees_near_and_far_cues_as_often():
    batch = training_batch(0, 0, 2000, 64)
    ends = torch.tensor(batch.packed.lengths).cumsum(0)
    distances = ends - batch.cue_places - 2
    assert int(distances.min()) == 1
    assert int(distances.max()) == 64
    assert 0.4 < float((distances < 8).double().mean()) < 0.6
    assert max(batch.packed.lengths) <= longest_sequence(64)
    assert len(set(batch.labels.tolist())) == NUM_CUES


@pytest.mark.parametrize(("longest", "last"), [(2, 2), (128, 128), (100, 64)])
def test_distances_double(longest, last):
    distances = list_distances(longest)
    assert distances[0] == 1
    assert distances[-1] == last
    assert all(two == 2 * one for one, two in pairwise(distances))


def test_nets_have_about_as_many_parameters():
    nets = [build_net(kind, Sizes(64, 4096)) for kind in KINDS]
    sizes = [count_parameters(net) - count_positions(net) for net in nets]
    assert max(sizes) / min(sizes) < 1.1


def count_positions(net: torch.nn.Module) -> int:
    """Numbers of the vectors that tell where a word stands, which recurrent nets don't have."""
    return sum(each.numel() for name, each in net.named_parameters() if "position" in name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_net_learns_what_is_near(kind):
    torch.manual_seed(0)
    net = build_net(kind, Sizes(32, 2))
    before = measure_accuracy(net, [1], CPU)[0]
    settings = LoopSettings(seed=0, learning_rate=5e-3, weight_decay=0.0)
    speed = train(net, 60_000, 2, settings, Machine(CPU, "fp32", 1.0))
    assert speed > 0
    assert before < 0.4
    assert measure_accuracy(net, [1], CPU)[0] > 0.9


def test_a_net_whose_gradients_arent_finite_fails():
    net = build_net("gru", Sizes(16, 2))
    with torch.no_grad():
        next(net.parameters()).fill_(torch.nan)
    settings = LoopSettings(seed=0, weight_decay=0.0)
    with pytest.raises(NonFiniteError, match=r"step 0: loss nan, norm of the gradient nan"):
        train(net, 3_000, 2, settings, Machine(CPU, "fp32", 1.0))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gradients_are_taken_without_cudnn(kind, monkeypatch):
    seen = []

    def look(net, batch):
        seen.append(torch.backends.cudnn.enabled)
        return score(net, batch)

    monkeypatch.setattr(agreement_nets, "score", look)
    measure_gradients(build_net(kind, Sizes(16, 8)), [1], CPU)
    assert seen == [False]
    assert torch.backends.cudnn.enabled


def test_gradients_are_those_of_the_loss_at_the_cue():
    torch.manual_seed(0)
    net = build_net("lstm", Sizes(16, 8))
    near, far = measure_gradients(net, [1, 64], CPU)
    assert near > 10 * far > 0
    assert all(parameter.grad is None for parameter in net.parameters())
    batch = measuring_batch(1, 32)
    (expected,) = torch.autograd.grad(score(net, batch).losses["cue"], net.reader.embeddings.weight)
    # summed over the cues' entries, gradients at lures would count too: at distance 1 there are few
    assert float(expected[FIRST_CUE:FIRST_FILLER].norm()) <= 32 * near
