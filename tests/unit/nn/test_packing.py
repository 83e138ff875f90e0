"""Which sequences are computed together."""

import numpy as np
import pytest
import torch

from bertkit.base.errors import InputError
from bertkit.nn.packed_ids import plan_batches
from bertkit.nn.packing import PackedBatch


def test_batches_hold_each_sequence_once_and_keep_to_the_budget():
    lengths = [3, 9, 1, 4, 12, 2, 2]
    batches = list(plan_batches(lengths, 8))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert batches[0] == [4]  # longer than the budget, and alone
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= 8 for batch in batches)
    ordered = [lengths[index] for batch in batches for index in batch]
    assert ordered == sorted(lengths, reverse=True)
    assert list(plan_batches([], 8)) == []


def test_a_long_sequence_does_not_make_rows_of_its_length_of_all_short_ones():
    lengths = [2] * 700 + [512]
    batches = list(plan_batches(lengths, 2048))
    assert [len(batch) for batch in batches] == [8, 693]
    assert batches[0][0] == 700


def test_a_position_is_the_column_when_the_mask_has_holes():
    ids = torch.tensor([[0, 5, 6], [7, 0, 8]])
    mask = torch.tensor([[False, True, True], [True, False, True]])
    batch = PackedBatch.from_padded(ids, torch.zeros_like(ids), mask)
    assert batch.input_ids.tolist() == [5, 6, 7, 8]
    assert batch.position_ids.tolist() == [1, 2, 0, 2]
    assert batch.lengths == (2, 2)


@pytest.mark.parametrize("sequences", [[], [[]], [[1], []]])
def test_an_empty_sequence_is_refused(sequences):
    with pytest.raises(InputError, match="at least one"):
        PackedBatch.from_sequences(sequences, sequences)


def test_segments_must_match():
    with pytest.raises(InputError, match="same lengths"):
        PackedBatch.from_sequences([[1, 2]], [[0]])


def test_ids_of_the_right_type_are_not_copied():
    ids = np.array([2, 5, 3, 2, 3])
    lengths = np.array([3, 2])
    batch = PackedBatch.from_flat(ids, lengths)
    assert batch.input_ids.data_ptr() == ids.ctypes.data
    assert batch.position_ids.tolist() == [0, 1, 2, 0, 1]
    assert PackedBatch.from_flat(ids.astype(np.int32), lengths).input_ids.dtype == torch.int64
