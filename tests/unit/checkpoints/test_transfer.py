"""Each foreign tensor is taken exactly once, or one error lists both sides."""

from pathlib import Path

import pytest
import torch
from tests.unit.inference.small import as_lazy
from torch import Tensor

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.transfer import export_tensors, import_tensors, is_finite, unmark_own_head

SELF = "bert.encoder.layer.0.attention.self"
QKV = "encoder.layers.0.attention.query_key_value.bias"
WORDS = "encoder.embeddings.word.weight"
TENSORS = {QKV: torch.arange(6.0), WORDS: torch.ones(3, 2)}
SHAPES = {name: tuple(tensor.shape) for name, tensor in TENSORS.items()}
SOURCE = Path("model")


def lazy(tensors: dict[str, Tensor]) -> dict[str, LazyTensor]:
    def reader(tensor: Tensor) -> LazyTensor:
        return LazyTensor(tuple(tensor.shape), tensor.dtype, lambda: tensor)

    return {name: reader(tensor) for name, tensor in tensors.items()}


def test_export_and_import_give_back_the_same_tensors():
    foreign = export_tensors(TENSORS)
    assert foreign[f"{SELF}.key.bias"].tolist() == [2.0, 3.0]
    found = import_tensors(lazy(foreign), SHAPES, SOURCE)
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)


def test_half_precision_becomes_float32():
    foreign = {name: tensor.half() for name, tensor in export_tensors(TENSORS).items()}
    assert {t.dtype for t in import_tensors(lazy(foreign), SHAPES, SOURCE).values()} == {
        torch.float32
    }


def test_one_error_lists_both_sides():
    foreign = export_tensors(TENSORS)
    foreign[f"{SELF}.query.bias"] = torch.ones(5)
    foreign[f"{SELF}.key.bias"] = torch.ones(2, dtype=torch.int64)
    del foreign[f"{SELF}.value.bias"]
    foreign["more"] = torch.ones(1)
    with pytest.raises(CheckpointError) as raised:
        import_tensors(lazy(foreign), SHAPES, SOURCE)
    message = str(raised.value)
    for part in ("[5] and must be [2]", "torch.int64", f"missing {SELF}.value", "unknown more"):
        assert part in message


def test_where_all_names_differ_both_sides_are_shown():
    """As in what was saved from inside torch's DataParallel."""
    foreign = {f"module.{name}": tensor for name, tensor in export_tensors(TENSORS).items()}
    expected = {
        name.replace("0", str(n)): shape for n in range(9) for name, shape in SHAPES.items()
    }
    with pytest.raises(CheckpointError) as raised:
        import_tensors(lazy(foreign), expected, SOURCE)
    message = str(raised.value)
    assert f"missing {SELF}.query.bias; unknown module." in message
    assert "more" in message


def test_unused_parts_are_left_behind():
    foreign = export_tensors(TENSORS) | {"classifier.bias": torch.ones(1)}
    assert import_tensors(lazy(foreign), SHAPES, SOURCE, unused_parts=["classifier"])


def test_large_numbers_are_finite_though_their_sum_is_not():
    assert is_finite(torch.full((4,), 3e38))


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (6,)])
def test_other_shapes_are_left_to_the_check_of_shapes(shape):
    weight = as_lazy(torch.zeros(shape))
    assert unmark_own_head({"classifier.weight": weight})["classifier.weight"] is weight
