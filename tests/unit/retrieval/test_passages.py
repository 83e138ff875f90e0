"""Where texts are cut into passages."""

import pytest

from bertkit.retrieval.passages import cut_passages

SENTENCE = "Four words are here. "


def cut(text, size=10, overlap=0.0, **options):
    found = cut_passages(text, lambda part: len(part.split()), size, overlap, **options)
    return [(one.line, one.text.strip()) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree", [(1, "one\ntwo"), (4, "three")]),
        ("one\r\ntwo\r\n \r\nthree\r\n", [(1, "one\r\ntwo"), (4, "three")]),
        ("one\ntwo\n", [(1, "one"), (2, "two")]),
        ("# A\n\n## B\n\none\n\ntwo", [(1, "# A\n\n## B\n\none"), (7, "two")]),
        ("one\n# A\ntwo\nthree", [(1, "one"), (2, "# A\ntwo"), (4, "three")]),
        ("one\n# A\ntwo\n\n#tag", [(1, "one"), (2, "# A\ntwo"), (5, "#tag")]),
        ("Bread\n=====\n\nflour\n\na\n---\nb", [(1, "Bread\n=====\n\nflour"), (6, "a\n---\nb")]),
        ("one\nBread\n--\nflour\nwater", [(1, "one"), (2, "Bread\n--\nflour"), (5, "water")]),
        ("one\n\n---\n\ntwo", [(1, "one"), (3, "---\n\ntwo")]),
        (
            "---\na: b\nc: d\n---\n\n# A\none\n\ntwo",
            [(1, "---\na: b\nc: d\n---\n\n# A\none"), (9, "two")],
        ),
        ("\n\n one\n\n# last", [(3, "one"), (5, "# last")]),
        (" \0\n", []),
    ],
)
def test_plain_text_is_cut_at_blank_lines_and_headings_go_with_what_follows(text, expected):
    assert cut(text) == expected


def test_a_row_is_cut_only_if_it_is_long():
    assert cut("one\n\ntwo", stays_whole=True) == [(1, "one\n\ntwo")]
    assert cut(SENTENCE * 3, stays_whole=True) == [
        (1, (SENTENCE * 2).strip()),
        (1, SENTENCE.strip()),
    ]


def test_long_paragraphs_are_cut_between_sentences_and_overlap_by_whole_ones():
    one = SENTENCE.strip()
    found = cut(f"It is cold\nhere. {SENTENCE * 4}\n\nEnd.", size=12, overlap=0.5)
    assert found == [
        (1, f"It is cold\nhere. {one} {one}"),
        (2, f"{one} {one} {one}"),
        (4, "End."),
    ]
    assert cut(SENTENCE * 4, size=12, overlap=0.3)[1] == (1, one)  # a sentence is a third


def test_long_sentences_are_cut_at_line_ends_else_blanks_else_anywhere():
    assert cut("a b c\nd e f\n" * 2, size=9, stays_whole=True) == [
        (1, "a b c\nd e f"),
        (3, "a b c\nd e f"),
    ]
    assert "".join(f"{text} " for _, text in cut("word " * 20, size=8)) == "word " * 20
    found = cut_passages("x" * 50, len, 30, 0)
    assert [one.text for one in found] == ["x" * 25, "x" * 25]


def test_where_parts_have_fewer_tokens_than_their_whole_passages_still_fit():
    text = "One. Two. Three. Four. Five."
    found = cut_passages(text, lambda part: 3 * part.count(" ") + 2, 10, 0.5)
    assert [one.text.strip() for one in found] == [
        "One. Two. Three.",
        "Two. Three. Four.",
        "Three. Four. Five.",
    ]
