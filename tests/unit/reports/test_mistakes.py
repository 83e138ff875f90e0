"""Mistakes: marks stand where the offsets say, whatever the text holds."""

import pytest

from bertkit.base.errors import InputError
from bertkit.reports.mistakes import (
    EXCERPT_CHARACTERS,
    FOLDED_CHARACTERS,
    MAX_CHARACTERS,
    Highlight,
    MarkedText,
    Piece,
)


def test_overlapping_highlights_are_cut_where_they_begin_and_end():
    passage = MarkedText(
        "Barack Obama left Berlin",
        highlights=[
            Highlight(0, 12, "true", "PER"),
            Highlight(7, 12, "predicted", "LOC"),
            Highlight(18, 24, "predicted"),
        ],
    )
    assert passage.pieces() == [
        Piece("Barack ", "true", ""),
        Piece("Obama", "true predicted", "true PER, predicted LOC"),
        Piece(" left ", "", ""),
        Piece("Berlin", "predicted", "predicted"),
    ]


def test_neighbors_and_equals_keep_their_own_words():
    passage = MarkedText(
        "abcd",
        highlights=[
            Highlight(0, 2, "true", "A"),
            Highlight(2, 4, "true", "B"),
            Highlight(2, 4, "true", "B"),
            Highlight(3, 3, "predicted", "nothing"),
        ],
    )
    assert passage.pieces() == [
        Piece("ab", "true", "true A"),
        Piece("cd", "true", "true B, true B"),
    ]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 6), (3, 2), (6, 6)])
def test_a_highlight_outside_its_text_is_refused(start, stop):
    with pytest.raises(InputError, match=f"of 5 characters, and goes from {start} to {stop}"):
        MarkedText("plain", highlights=[Highlight(start, stop, "true")])


def test_a_long_text_is_folded_around_its_first_highlight():
    text = "".join(chr(0x4E00 + index) for index in range(FOLDED_CHARACTERS + 600))
    passage = MarkedText(
        text, highlights=[Highlight(500, 520, "true"), Highlight(900, 901, "true")]
    )
    assert passage.is_long
    before, start, marked, rest, after = passage.excerpt()
    assert (before.text, after.text) == ("… ", " …")
    assert start.text + marked.text + rest.text == text[420 : 420 + EXCERPT_CHARACTERS]
    assert marked == Piece(text[500:520], "true", "true")
    assert "".join(piece.text for piece in passage.pieces()) == text


def test_an_excerpt_begins_and_ends_with_its_text():
    text = "x" * (FOLDED_CHARACTERS + 1)
    beginning = MarkedText(text).excerpt()
    assert [piece.text for piece in beginning] == ["x" * EXCERPT_CHARACTERS, " …"]
    end = MarkedText(text, highlights=[Highlight(len(text) - 1, len(text), "true")]).excerpt()
    assert [len(piece.text) for piece in end] == [2, EXCERPT_CHARACTERS - 1, 1]
    assert not MarkedText(text[1:]).is_long
    assert MarkedText("short").excerpt() == [Piece("short", "", "")]
    passage = MarkedText("x" * (MAX_CHARACTERS + 5))
    assert passage.num_left_out == 5
    assert [len(piece.text) for piece in passage.pieces()] == [MAX_CHARACTERS]
    assert MarkedText("x" * MAX_CHARACTERS).num_left_out == 0


def test_a_highlight_across_the_border_of_the_excerpt_is_marked_up_to_it():
    text = "x" * 1000
    [piece, after] = MarkedText(text, highlights=[Highlight(0, 900, "true", "A")]).excerpt()
    assert piece == Piece("x" * EXCERPT_CHARACTERS, "true", "")
    assert after.text == " …"
