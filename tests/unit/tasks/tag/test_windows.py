"""Long sentences in windows; tests/property holds them for any sentence."""

from tests.waiting import little_computing

from bertkit.tasks.tag.windows import cut_windows


def test_a_short_sentence_is_one_window():
    found = cut_windows([2, 1, 3], 6, 4)
    assert found.words == ((0, 3),)
    assert found.rows.tolist() == [1, 3, 4]


def test_a_sentence_without_words_is_one_window_of_none():
    found = cut_windows([], 6, 4)
    assert found.words == ((0, 0),)
    assert found.rows.tolist() == []


def test_words_are_tagged_where_more_stands_around_them():
    found = cut_windows([1] * 8, 4, 2)
    assert found.words == ((0, 4), (2, 6), (4, 8))
    # Windows of six tokens begin at 0, 6 and 12; word 2 has one word behind it in the first, and
    # none before it in the second.
    assert found.rows.tolist() == [1, 2, 3, 8, 9, 14, 15, 16]


def test_windows_of_whole_words_have_in_common_what_is_asked_for_at_most():
    assert cut_windows([2, 2, 2, 2], 4, 1).words == ((0, 2), (2, 4))
    assert cut_windows([2, 2, 2, 2], 4, 2).words == ((0, 2), (1, 3), (2, 4))
    assert cut_windows([1, 1, 1, 4, 1], 4, 2).words == ((0, 3), (3, 4), (4, 5))


def test_much_context_is_half_a_window_at_most():
    assert cut_windows([1] * 9, 4, 100).words == cut_windows([1] * 9, 4, 2).words


def test_a_book_takes_little_time():
    with little_computing():
        found = cut_windows([1] * 300_000, 126, 1000)
    assert len(found.words) == 1 + -(-(300_000 - 126) // 63)
