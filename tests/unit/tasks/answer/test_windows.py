"""Windows of a context, and the tokens of an answer in them."""

import numpy as np
import pytest

from bertkit.tasks.answer.scoring import find_tokens

OFFSETS = np.array([[0, 3], [4, 6], [6, 9], [9, 10]], dtype=np.int32)


@pytest.mark.parametrize(
    ("span", "tokens"),
    [
        ((0, 3), (0, 0)),
        ((0, 6), (0, 1)),
        ((5, 7), (1, 2)),
        ((3, 10), (1, 3)),
        ((3, 4), None),
        ((10, 12), None),
    ],
)
def test_characters_are_found_among_tokens(span, tokens):
    assert find_tokens(OFFSETS, span) == tokens
