"""How much of the logits is in memory at a time."""

import pytest

from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.logits import cut_by_scores


def encode(*lengths: int) -> list[Encoded]:
    return [Encoded((TokenSequence([1] * length, [0] * length),)) for length in lengths]


@pytest.mark.parametrize(
    ("num_labels", "row", "parts"),
    [
        (0, "token", [range(4)]),
        (3, "sequence", [range(4)]),
        (6, "sequence", [range(2), range(2, 4)]),
        (50_000, "sequence", [range(1), range(1, 2), range(2, 3), range(3, 4)]),
        (2, "token", [range(2), range(2, 3), range(3, 4)]),
    ],
)
def test_very_many_labels_are_scored_in_parts(num_labels, row, parts):
    assert cut_by_scores(encode(2, 3, 9, 1), num_labels, row=row, most=12) == parts


def test_no_example_is_one_part():
    assert cut_by_scores([], 3, row="sequence") == [range(0)]
