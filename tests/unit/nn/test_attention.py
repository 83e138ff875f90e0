"""Attention over runs of equal length, and when it is taken."""

import pytest
import torch

from bertkit.nn import attention
from bertkit.nn.attention import attend, attend_runs
from bertkit.nn.packing import PackedBatch


def build(lengths: tuple[int, ...]) -> tuple[torch.Tensor, PackedBatch]:
    torch.manual_seed(sum(lengths))
    batch = PackedBatch.from_single([[5] * length for length in lengths])
    return torch.randn(sum(lengths), 3, 2, 8, dtype=torch.float64), batch


@pytest.mark.parametrize(
    "lengths",
    [(1,), (9,), (4, 4, 4), (3, 3, 5, 5, 5, 8), (8, 1, 8), (2, 7, 2, 2, 7), (70, 1, 33)],
)
def test_runs_agree_with_padded_rows(lengths):
    heads, batch = build(lengths)
    expected = attend(heads, batch, dropout_rate=0.0)
    found = attend_runs(heads, batch)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_runs_are_for_inference_alone(monkeypatch):
    heads, batch = build((3, 3, 5))
    calls = []
    monkeypatch.setattr(
        attention,
        "attend_runs",
        lambda *given, **more: calls.append("runs") or attend_runs(*given, **more),
    )
    attend(heads, batch, dropout_rate=0.0)
    with torch.no_grad():
        attend(heads, batch, dropout_rate=0.0)
    with torch.inference_mode():
        attend(heads, batch, dropout_rate=0.1)
        assert not calls
        attend(heads, batch, dropout_rate=0.0)
    assert calls == ["runs"]
