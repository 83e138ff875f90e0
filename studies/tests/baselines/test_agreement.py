"""The made-up language, the nets that learn it, and what is measured of them."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from tests.closeness import close

from bertkit.base.errors import NonFiniteError
from bertkit.nn.packing import PackedBatch
from bertkit.training.job import Machine
from bertkit.training.settings import LoopSettings
from bertkit_studies.baselines import agreement_nets
from bertkit_studies.baselines.agreement import (
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
from bertkit_studies.baselines.agreement_nets import (
    NUM_TRACED,
    Net,
    Sizes,
    build_net,
    count_parameters,
    find_embeddings,
    log_odds,
    measure_accuracy,
    measure_gradients,
    train,
)

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
        return log_odds(net, batch)

    monkeypatch.setattr(agreement_nets, "log_odds", look)
    measure_gradients(build_net(kind, Sizes(16, 8)), [1], CPU)
    assert seen == [False]
    assert torch.backends.cudnn.enabled


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_shares_of_those_of_the_odds_at_the_nearest_cue(kind):
    torch.manual_seed(0)
    net = build_net(kind, Sizes(32, 8)).eval()
    found = measure_gradients(net, [1, 4, 8], CPU)
    assert all(parameter.grad is None for parameter in net.parameters())
    norms = [trace_mean(net, distance) for distance in (1, 4, 8)]
    assert found == close([math.log10(norm / norms[0]) for norm in norms], within=1e-4)
    assert found[0] == 0.0


def trace_mean(net: Net, distance: int) -> float:
    """The mean norm of the gradient at the cue, an example at a time."""
    batch, norms, start = measuring_batch(distance, NUM_TRACED), [], 0
    table = find_embeddings(net)
    examples = batch.packed.input_ids.split(batch.packed.lengths)
    for ids, place, label in zip(examples, batch.cue_places, batch.labels, strict=True):
        at = int(place) - start
        start += len(ids)
        cue = table.weight[ids[at]].detach().requires_grad_()
        handle = table.register_forward_hook(
            lambda _, __, found, at=at, cue=cue: torch.cat([found[:at], cue[None], found[at + 1 :]])
        )
        chances = net.scores(PackedBatch.from_single([ids.tolist()]))[0].softmax(dim=0)
        handle.remove()
        odds = chances[label] / (1 - chances[label])
        norms.append(torch.autograd.grad(odds.log(), cue)[0].norm())
    return float(sum(norms) / len(norms))


def test_a_gradient_that_has_no_number_has_a_logarithm():
    net = build_net("gru", Sizes(16, 8))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    assert measure_gradients(net, [1, 8], CPU) == [0.0, 0.0]


def test_the_speed_is_that_of_the_middling_step_behind_the_first_ones(monkeypatch):
    clock = iter([0.0, 50.0, 0.0, 9.0, 0.0, 1.0, 0.0, 1.0, 0.0, 30.0])  # two looks a step
    monkeypatch.setattr(agreement_nets, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    sizes = [training_batch(0, step, 64, 2).num_tokens for step in range(5)]
    net, settings = build_net("gru", Sizes(16, 2)), LoopSettings(seed=0, weight_decay=0.0)
    speed = train(net, sum(sizes), 2, settings, Machine(CPU, "fp32", 1.0))
    assert speed in sizes[2:4]  # tokens of a step of one second
