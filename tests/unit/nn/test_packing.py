import pytest
import torch

from bertkit.base.errors import InputError
from bertkit.nn.packing import PackedBatch


def test_positions_restart_with_each_sequence():
    batch = PackedBatch.from_sequences([[5, 6], [7, 8, 9]], [[0, 0], [0, 1, 1]])
    assert batch.position_ids.tolist() == [0, 1, 0, 1, 2]
    assert batch.offsets.tolist() == [0, 2, 5]
    assert batch.first_tokens.tolist() == [0, 2]
    assert batch.num_tokens == 5


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


def test_a_row_of_padding_only_is_refused():
    ids = torch.tensor([[5, 6], [0, 0]])
    with pytest.raises(InputError, match="at least one token"):
        PackedBatch.from_padded(ids, ids, ids.bool())
