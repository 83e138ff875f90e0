"""Each foreign tensor is taken exactly once, or one error lists both sides."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.names import BERT
from bertkit.checkpoints.torch_tensors import export_tensors, lazy_tensor, lazy_tensors
from bertkit.checkpoints.transfer import import_tensors, is_finite, unmark_own_head

SELF = "bert.encoder.layer.0.attention.self"
QKV = "encoder.layers.0.attention.query_key_value.bias"
WORDS = "encoder.embeddings.word.weight"
TENSORS = {QKV: torch.arange(6.0), WORDS: torch.ones(3, 2)}
SHAPES = {name: tuple(tensor.shape) for name, tensor in TENSORS.items()}
SOURCE = Path("model")
TABLE = BERT.table()


def test_export_and_import_give_back_the_same_tensors():
    foreign = export_tensors(TENSORS, TABLE)
    assert foreign[f"{SELF}.key.bias"].tolist() == [2.0, 3.0]
    found = import_tensors(lazy_tensors(foreign), SHAPES, SOURCE, names=TABLE)
    assert all(np.array_equal(found[name], TENSORS[name]) for name in TENSORS)


def test_half_precision_becomes_float32():
    foreign = {name: tensor.half() for name, tensor in export_tensors(TENSORS, TABLE).items()}
    assert {
        t.dtype for t in import_tensors(lazy_tensors(foreign), SHAPES, SOURCE, names=TABLE).values()
    } == {np.dtype(np.float32)}


def test_one_error_lists_both_sides():
    foreign = export_tensors(TENSORS, TABLE)
    foreign[f"{SELF}.query.bias"] = torch.ones(5)
    foreign[f"{SELF}.key.bias"] = torch.ones(2, dtype=torch.int64)
    del foreign[f"{SELF}.value.bias"]
    foreign["more"] = torch.ones(1)
    with pytest.raises(CheckpointError) as raised:
        import_tensors(lazy_tensors(foreign), SHAPES, SOURCE, names=TABLE)
    message = str(raised.value)
    for part in ("[5] and must be [2]", "holds int64", f"missing {SELF}.value", "unknown more"):
        assert part in message


def test_where_all_names_differ_both_sides_are_shown():
    """As in what was saved from inside torch's DataParallel."""
    foreign = {f"module.{name}": tensor for name, tensor in export_tensors(TENSORS, TABLE).items()}
    expected = {
        name.replace("0", str(n)): shape for n in range(9) for name, shape in SHAPES.items()
    }
    with pytest.raises(CheckpointError) as raised:
        import_tensors(lazy_tensors(foreign), expected, SOURCE, names=TABLE)
    message = str(raised.value)
    assert f"missing {SELF}.query.bias; unknown module." in message
    assert "more" in message


def test_unused_parts_are_left_behind():
    foreign = export_tensors(TENSORS, TABLE) | {"classifier.bias": torch.ones(1)}
    assert import_tensors(
        lazy_tensors(foreign), SHAPES, SOURCE, unused_parts=["classifier"], names=TABLE
    )


def test_large_numbers_are_finite_though_their_sum_is_not():
    for largest in (3e38, 60_000.0, 1e308):
        dtype = {3e38: np.float32, 60_000.0: np.float16, 1e308: np.float64}[largest]
        assert is_finite(np.full(4, largest, dtype))
        assert not is_finite(np.array([largest, largest, np.inf], dtype))
        assert not is_finite(np.array([largest, np.nan], dtype))


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (6,)])
def test_other_shapes_are_left_to_the_check_of_shapes(shape):
    weight = lazy_tensor(torch.zeros(shape))
    assert unmark_own_head({"classifier.weight": weight})["classifier.weight"] is weight
