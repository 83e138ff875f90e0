"""The CUDA path: variable-length flash attention in bf16. Runs only where there is a GPU."""

from collections.abc import Callable

import pytest
import torch
from tests.closeness import assert_close
from torch import Tensor

from bertkit.checkpoints.families import FAMILIES
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining, BertLMHeadModel
from bertkit.nn.packing import PackedBatch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
CUDA = torch.device("cuda")
LENGTHS = (1, 7, 128, 33)
TOLERANCE = 0.05  # of the greatest value, which is what bf16 leaves of it after some layers


def build(**sizes: int) -> tuple[BertForPreTraining, PackedBatch]:
    torch.manual_seed(0)
    config = BertConfig.preset("tiny", vocab_size=1000, hidden_dropout_prob=0.0, **sizes)
    return BertForPreTraining(config).to(CUDA).eval(), draw(LENGTHS)


def build_causal() -> BertLMHeadModel:
    torch.manual_seed(0)
    config = BertConfig.preset("tiny", vocab_size=1000, is_decoder=True)
    return BertLMHeadModel(config).to(CUDA).eval()


def draw(lengths: tuple[int, ...]) -> PackedBatch:
    ids = [torch.randint(5, 1000, (length,)).tolist() for length in lengths]
    return PackedBatch.from_single(ids).to(CUDA)


def compute_both(compute: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """The same in float32, and in bf16 by the kernel of variable lengths."""
    exact = compute()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return exact, compute().float()


def assert_near(exact: Tensor, fast: Tensor) -> None:
    assert_close(fast, exact, within=TOLERANCE * float(exact.abs().max()))


@pytest.mark.parametrize("num_features", [64, 26])  # of a head; the kernel takes multiples of 8
def test_half_precision_agrees_with_float32(num_features):
    model, batch = build(hidden_size=2 * num_features)
    with torch.no_grad():
        assert_near(*compute_both(lambda: model.score_words(model.encoder(batch))))


@pytest.mark.parametrize("family", ["mpnet", "modernbert"])
def test_half_precision_agrees_for_families_with_relative_positions(family):
    kind = FAMILIES[family].config
    torch.manual_seed(0)
    changes = {"local_attention": 20} if family == "modernbert" else {}
    config = kind.preset("mini", vocab_size=1000, pad_token_id=0, **changes)
    model, batch = BertForMaskedLM(config).to(CUDA).eval(), draw(LENGTHS)
    with torch.no_grad():
        assert_near(*compute_both(lambda: model.score_words(model.encoder(batch))))


def test_gradients_are_finite_in_bf16():
    model, batch = build()
    model.train()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        places = batch.first_tokens.long()
        loss, _, relations = model.masked_loss_and_relations(batch, places, batch.input_ids[places])
    (loss + relations.float().square().mean()).backward()
    assert all(
        bool(torch.isfinite(parameter.grad).all())
        for parameter in model.parameters()
        if parameter.grad is not None
    )


@torch.no_grad()
def test_left_to_right_nothing_is_seen_of_what_follows():
    model, batch = build_causal(), draw(LENGTHS)
    exact, fast = compute_both(lambda: model.next_scores(batch))
    assert_near(exact, fast)
    batch.input_ids[-20:] = 7  # of the last sequence, of 33
    with torch.autocast("cuda", dtype=torch.bfloat16):
        changed = model.next_scores(batch).float()
    assert torch.equal(changed[:-20], fast[:-20])
    assert not torch.equal(changed[-20:], fast[-20:])
