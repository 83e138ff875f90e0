"""Attention over runs of equal length and by the kernel of CUDA, and when each is taken."""

import inspect

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import varlen

from bertkit.nn import attention_kernels, packing
from bertkit.nn.attention import SelfAttention, attend_spelled_out
from bertkit.nn.attention_kernels import SHORT, attend_runs, uses_flash
from bertkit.nn.packing import PackedBatch

KERNEL = inspect.signature(varlen.varlen_attn)


def build(lengths: tuple[int, ...]) -> tuple[torch.Tensor, PackedBatch]:
    torch.manual_seed(sum(lengths))
    batch = PackedBatch.from_single([[5] * length for length in lengths])
    return torch.randn(sum(lengths), 3, 2, 8, dtype=torch.float64), batch


def attend(heads, batch, dropout_rate=0.0, *, is_causal=False):
    return batch.attend(heads, SelfAttention(16, 2, dropout_rate, is_causal=is_causal))


@pytest.mark.parametrize(
    "lengths",
    [(1,), (9,), (4, 4, 4), (3, 3, 5, 5, 5, 8), (8, 1, 8), (2, 7, 2, 2, 7), (70, 1, 33)],
)
def test_runs_agree_with_padded_rows(lengths):
    heads, batch = build(lengths)
    expected = attend(heads, batch)
    found = attend_runs(heads, batch.lengths)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


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

    monkeypatch.setattr(attention_kernels, "attend_spelled_out", spell_out)
    heads, batch = build(lengths)
    expected = attend(heads, batch, is_causal=is_causal)
    assert not calls
    learned = heads.requires_grad_()
    found = attend(learned, batch, is_causal=is_causal)
    assert calls == [max(rows) for rows in rows_of(batch) if max(rows) <= SHORT]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


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


def attend_by_offsets(*words, **options):
    """What the kernel computes on a GPU, for calls that it takes."""
    given = KERNEL.bind(*words, **options).arguments
    query, key, value = (given[name] for name in ("query", "key", "value"))
    ends, other_ends = given["cu_seq_q"], given["cu_seq_k"]
    assert ends.dtype == other_ends.dtype == torch.int32
    assert (ends[-1], other_ends[-1]) == (len(query), len(key))
    assert (ends.diff().max(), other_ends.diff().max()) == (given["max_q"], given["max_k"])
    is_causal = {(-1, 0): True, (-1, -1): False}[given["window_size"]]
    lengths, others = ends.diff().tolist(), other_ends.diff().tolist()
    contexts = []
    for row in zip(query.split(lengths), key.split(others), value.split(others), strict=True):
        heads = [part.transpose(0, 1)[None] for part in row]
        context = attend_spelled_out(*heads, None, 0.0, is_causal=is_causal)
        contexts.append(context[0].transpose(0, 1))
    return torch.cat(contexts)


@pytest.mark.parametrize("is_causal", [False, True])
def test_flash_is_called_as_its_kernel_wants_and_agrees(is_causal, monkeypatch):
    heads, batch = build((3, 70, 1, 5))
    expected = attend(heads, batch, is_causal=is_causal)
    monkeypatch.setattr(packing, "uses_flash", lambda values: True)
    monkeypatch.setattr(varlen, "varlen_attn", attend_by_offsets)
    found = attend(heads, batch, is_causal=is_causal)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
