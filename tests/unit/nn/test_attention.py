"""Attention over runs of equal length and by the kernel of CUDA, and when each is taken."""

import inspect
from functools import partial

import pytest
import torch
from tests.closeness import assert_close, close
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import varlen

from bertkit.nn import kernels, packing
from bertkit.nn.attention import SelfAttention, attend_spelled_out
from bertkit.nn.dropout import Dropout, drop
from bertkit.nn.head_blocks import HeadLayout, group_lengths, lay_out_heads
from bertkit.nn.kernels import SHORT, attend_runs, attend_within, uses_flash
from bertkit.nn.masks import within
from bertkit.nn.packing import PackedBatch


def test_it_drops_at_its_rate_and_keeps_the_mean():
    torch.manual_seed(0)
    dropped = drop(torch.ones(1_000_003), 0.1)
    share = float((dropped == 0).double().mean())
    assert share == close(26 / 256, within=0.002)
    assert float(dropped.double().mean()) == close(1.0, within=0.002)
    assert dropped.unique().numel() == 2


def test_neighbors_are_independent():
    torch.manual_seed(1)
    zeros = (drop(torch.ones(800_000), 0.5) == 0).view(-1, 8).double()
    assert_close(torch.corrcoef(zeros.T), torch.eye(8), within=0.02)


def test_the_gradient_is_that_of_what_was_kept():
    values = torch.randn(1000, requires_grad=True)
    dropped = drop(values, 0.3)
    dropped.sum().backward()
    kept = dropped != 0
    assert torch.equal(values.grad != 0, kept)
    assert_close(dropped[kept], (values * values.grad)[kept])


def test_a_seed_decides_and_evaluation_passes_through():
    values = torch.randn(64)
    layer = Dropout(0.5)
    torch.manual_seed(3)
    first = layer(values)
    torch.manual_seed(3)
    assert torch.equal(layer(values), first)
    assert not torch.equal(first, values)
    assert torch.equal(layer.eval()(values), values)
    assert drop(values, 0.0) is values


CPU = torch.device("cpu")


def test_rows_are_scattered_to_their_places_with_zeros_between():
    layout = HeadLayout.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    places = layout.scatter(rows)
    assert places.tolist() == [[3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert torch.equal(layout.gather(places), rows)


def test_the_way_back_is_the_derivative():
    layout = HeadLayout.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    places = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.scatter, rows)
    assert torch.autograd.gradcheck(layout.gather, places)


def test_sequences_of_similar_length_share_a_block():
    assert group_lengths((8, 2, 7, 9, 1, 2), 0.75) == [[3, 0, 2], [1, 5], [4]]
    assert group_lengths((4, 3), 0.75) == [[0, 1]]
    assert group_lengths((2, 9), 0.0) == [[1, 0]]
    lengths = (8, 2, 7, 9, 1, 2)
    blocks = lay_out_heads(lengths, group_lengths(lengths, 0.75), 1, 2, CPU)
    assert blocks.shapes == ((3, 2, 9), (2, 2, 2), (1, 2, 1))
    mask, *others = blocks.masks
    assert mask is not None
    assert mask.sum(dim=1).tolist() == [9, 8, 7]
    assert others == [None, None]


KERNEL = inspect.signature(varlen.varlen_attn)


def build(lengths: tuple[int, ...]) -> tuple[torch.Tensor, PackedBatch]:
    torch.manual_seed(sum(lengths))
    batch = PackedBatch.from_single([[5] * length for length in lengths])
    return torch.randn(sum(lengths), 3, 2, 8, dtype=torch.float64), batch


def attend(heads, batch, dropout_rate=0.0, *, is_causal=False, window=None):
    layer = SelfAttention(16, 2, dropout_rate, is_causal=is_causal, window=window)
    return batch.attend(heads, layer)


@pytest.mark.parametrize(
    "lengths", [(1,), (9,), (4, 4, 4), (3, 3, 5, 5, 5, 8), (8, 1, 8), (2, 7, 2, 2, 7), (70, 1, 33)]
)
def test_runs_agree_with_padded_rows(lengths):
    heads, batch = build(lengths)
    expected = attend(heads, batch)
    found = attend_runs(
        heads, batch.lengths, partial(attend_within, layer=SelfAttention(16, 2, 0.0))
    )
    assert found.shape == expected.shape
    assert_close(found, expected)


def test_runs_are_for_inference_alone(monkeypatch):
    heads, batch = build((3, 3, 5))
    calls = []
    monkeypatch.setattr(
        packing,
        "attend_runs",
        lambda *given, **more: calls.append("runs") or attend_runs(*given, **more),
    )
    attend(heads, batch)
    with torch.no_grad():
        attend(heads, batch)
    with torch.inference_mode():
        attend(heads, batch, dropout_rate=0.1)
        assert not calls
        attend(heads, batch)
    assert calls == ["runs"]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("lengths", [(3, 3, 5), (SHORT, 50), (SHORT + 1, SHORT), (90, 2)])
def test_what_is_learned_from_is_spelled_out_where_it_is_short(lengths, is_causal, monkeypatch):
    calls = []

    def spell_out(*given, **more):
        calls.append(given[0].shape[2])
        return attend_spelled_out(*given, **more)

    monkeypatch.setattr(kernels, "attend_spelled_out", spell_out)
    heads, batch = build(lengths)
    expected = attend(heads, batch, is_causal=is_causal)
    assert not calls
    learned = heads.requires_grad_()
    found = attend(learned, batch, is_causal=is_causal)
    assert calls == [max(rows) for rows in rows_of(batch) if max(rows) <= SHORT]
    assert_close(found, expected)


def rows_of(batch: PackedBatch) -> list[list[int]]:
    return [[batch.lengths[number] for number in group] for group in batch.groups]


@pytest.mark.parametrize(
    ("num_features", "dtype", "capability", "expected"),
    [
        (64, torch.bfloat16, (8, 0), True),
        (256, torch.float16, (9, 0), True),
        (64, torch.float32, (9, 0), False),
        (26, torch.bfloat16, (9, 0), False),  # hidden size 312 with 12 heads
        (264, torch.bfloat16, (9, 0), False),
        (64, torch.bfloat16, (7, 5), False),  # a T4
    ],
)
def test_flash_is_for_what_its_kernel_takes(num_features, dtype, capability, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with FakeTensorMode():
        values = torch.empty(5, 3, 2, num_features, device="cuda", dtype=dtype)
    assert uses_flash(values) == expected
    assert not uses_flash(torch.empty(5, 3, 2, num_features, dtype=dtype))


WINDOW = 6


def attend_by_offsets(*words, **options):
    """What the kernel computes on a GPU, for calls that it takes."""
    given = KERNEL.bind(*words, **options).arguments
    query, key, value = (given[name] for name in ("query", "key", "value"))
    ends, other_ends = given["cu_seq_q"], given["cu_seq_k"]
    assert ends.dtype == other_ends.dtype == torch.int32
    assert (ends[-1], other_ends[-1]) == (len(query), len(key))
    assert (ends.diff().max(), other_ends.diff().max()) == (given["max_q"], given["max_k"])
    before, after = given["window_size"]
    assert (before, after) in {(-1, 0), (-1, -1), (WINDOW, WINDOW)}
    is_causal, is_local = after == 0, before == WINDOW
    lengths, others = ends.diff().tolist(), other_ends.diff().tolist()
    contexts = []
    for row in zip(query.split(lengths), key.split(others), value.split(others), strict=True):
        heads = [part.transpose(0, 1)[None] for part in row]
        hidden = ~within(WINDOW).find_allowed(heads[0].shape[2], heads[1].shape[2])
        bias = torch.zeros(1, *hidden.shape).masked_fill_(hidden, -torch.inf) if is_local else None
        context = attend_spelled_out(*heads, None, 0.0, is_causal=is_causal, bias=bias)
        contexts.append(context[0].transpose(0, 1))
    return torch.cat(contexts)


@pytest.mark.parametrize("layer", [{}, {"is_causal": True}, {"window": WINDOW}])
def test_flash_is_called_as_its_kernel_wants_and_agrees(layer, monkeypatch):
    heads, batch = build((3, 70, 1, 5))
    expected = attend(heads, batch, **layer)
    monkeypatch.setattr(packing, "uses_flash", lambda values: True)
    monkeypatch.setattr(varlen, "varlen_attn", attend_by_offsets)
    found = attend(heads, batch, **layer)
    assert_close(found, expected)
