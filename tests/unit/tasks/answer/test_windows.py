"""Windows, owners of tokens, and labels."""

import numpy as np
import pytest

from bertkit.tasks.answer.windows import (
    Windows,
    cut_parts,
    find_owners,
    find_tokens,
    label_windows,
)


@pytest.mark.parametrize(
    ("num_tokens", "size", "stride", "expected"),
    [
        (0, 5, 2, [(0, 0)]),
        (1, 5, 2, [(0, 1)]),
        (5, 5, 2, [(0, 5)]),
        (6, 5, 2, [(0, 5), (2, 6)]),
        (9, 5, 2, [(0, 5), (2, 7), (4, 9)]),
        (10, 5, 5, [(0, 5), (5, 10)]),
        (11, 5, 99, [(0, 5), (5, 10), (10, 11)]),
        (3, 1, 1, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_windows_begin_a_stride_apart_and_leave_nothing_out(num_tokens, size, stride, expected):
    parts = cut_parts(num_tokens, size, stride)
    assert [(part.start, part.stop) for part in parts] == expected


def test_a_token_belongs_to_the_window_where_it_has_most_context():
    parts = cut_parts(9, 5, 2)
    assert find_owners(parts, 9).tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    assert find_owners(cut_parts(0, 5, 2), 0).tolist() == []


def test_of_windows_with_equal_context_the_longer_wins_then_the_first():
    parts = (range(4), range(2, 5))
    assert find_owners(parts, 5).tolist() == [0, 0, 0, 1, 1]
    assert find_owners((range(3), range(2, 6)), 6)[2] == 1
    assert find_owners((range(3), range(2, 5)), 5)[2] == 0


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


def test_an_answer_is_labeled_where_a_window_has_all_of_it():
    parts = cut_parts(9, 5, 2)
    windows = Windows(parts, find_owners(parts, 9), OFFSETS, num_before=3)
    assert label_windows(windows, (3, 5)).tolist() == [[0, 0], [4, 6], [0, 0]]
    assert label_windows(windows, (4, 4)).tolist() == [[7, 7], [5, 5], [3, 3]]
    assert label_windows(windows, None).tolist() == [[0, 0]] * 3
