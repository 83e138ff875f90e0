"""Whatever the sentence, each word is tagged once, whole, and with its neighbors around it."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import little_computing

from bertkit.tasks.tag.windows import cut_windows


@given(st.data(), st.integers(1, 12), st.integers(0, 20))
def test_each_word_has_one_row_where_it_has_most_around_it(data, room, context):
    lengths = data.draw(st.lists(st.integers(1, room), max_size=40))
    found = cut_windows(lengths, room, context)
    ends = np.cumsum([0, *lengths])

    assert found.words[0][0] == 0
    assert found.words[-1][1] == len(lengths)
    expected: dict[int, tuple[float, int]] = {}
    offset = 0
    for begin, stop in found.words:
        assert ends[stop] - ends[begin] <= room
        for word in range(begin, stop):
            before = ends[word] - ends[begin] if begin else np.inf
            behind = ends[stop] - ends[word + 1] if stop < len(lengths) else np.inf
            row = offset + 1 + int(ends[word] - ends[begin])
            around = min(before, behind)
            if word not in expected or around > expected[word][0]:
                expected[word] = around, row
        offset += int(ends[stop] - ends[begin]) + 2
    assert found.rows.tolist() == [expected[word][1] for word in range(len(lengths))]

    for (begin, stop), (next_begin, next_stop) in pairwise(found.words):
        assert begin < next_begin <= stop < next_stop
        shared = ends[stop] - ends[next_begin]
        assert shared <= min(context, room // 2)
        if next_begin > 0:  # one word more would have been too much
            more = ends[stop] - ends[next_begin - 1]
            assert more > min(context, room // 2, room - lengths[stop])


def test_a_book_takes_little_time():
    with little_computing():
        found = cut_windows([1] * 300_000, 126, 1000)
    assert len(found.words) == 1 + -(-(300_000 - 126) // 63)
