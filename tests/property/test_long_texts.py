"""Whatever the sentence, each word is tagged once, whole, and with its neighbors around it."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import little_computing

from bertkit.tasks.tag.task import find_rows
from bertkit.tokenization.encoding import Template
from bertkit.tokenization.long_texts import TextCutter


@given(st.data(), st.integers(1, 12), st.integers(1, 20))
def test_each_word_has_one_row_where_it_has_most_around_it(data, room, stride):
    lengths = data.draw(st.lists(st.integers(1, room), max_size=40))
    windows = TextCutter(room, stride).cut_words(lengths)
    ends = np.cumsum([0, *lengths])

    assert windows[0].start == 0
    assert windows[-1].stop == len(lengths)
    expected: dict[int, tuple[float, int]] = {}
    offset = 0
    for window in windows:
        begin, stop = window.start, window.stop
        assert ends[stop] - ends[begin] <= room
        for word in window:
            before = ends[word] - ends[begin] if begin else np.inf
            behind = ends[stop] - ends[word + 1] if stop < len(lengths) else np.inf
            row = offset + 1 + int(ends[word] - ends[begin])
            around = min(before, behind)
            if word not in expected or around > expected[word][0]:
                expected[word] = around, row
        offset += int(ends[stop] - ends[begin]) + 2
    rows = find_rows(windows, lengths, Template.of_bert(2, 3).single).tolist()
    assert rows == [expected[word][1] for word in range(len(lengths))]

    for one, following in pairwise(windows):
        assert one.start < following.start <= one.stop < following.stop
        overlap = max(0, room - max(stride, lengths[one.stop]))
        assert ends[one.stop] - ends[following.start] <= overlap
        assert ends[one.stop] - ends[following.start - 1] > overlap  # one word more is too much


def test_a_book_takes_little_time():
    with little_computing():
        windows = TextCutter(126, 63).cut_words([1] * 300_000)
    assert len(windows) == 1 + -(-(300_000 - 126) // 63)
