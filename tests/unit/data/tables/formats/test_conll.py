"""Sentences of CoNLL: their words and tags, in any of the layouts that are about."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.data.tables.labeled import read, read_values, refuse, write

from bertkit.data.tables.formats import conll
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.examples import TagExample

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs"]), min_size=1, max_size=5)


def pair(tokens: str, tags: str) -> dict[str, object]:
    return {"tokens": tokens.split(), "tags": tags.split()}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\tO\nb\tB-X\n\nc\tO\n", [pair("a b", "O B-X"), pair("c", "O")]),
        ("a\tO\r\nb\tB-X\r\n\r\nc\tO", [pair("a b", "O B-X"), pair("c", "O")]),
        ("\n\n \t\na\tO\n\t\n\n\nb\tO\n\n\n", [pair("a", "O"), pair("b", "O")]),
        ("a O\nb  B-X\n\nc\tO \n", [pair("a b", "O B-X"), pair("c", "O")]),
        ("a NNP B-NP I-ORG\nb VB B-VP O\n", [pair("a b", "I-ORG O")]),
        ("a b\tO\nc\tO\n", [{"tokens": ["a b", "c"], "tags": ["O", "O"]}]),
        ("a\xa0b O\nc\u2028 O\n", [{"tokens": ["a\xa0b", "c\u2028"], "tags": ["O", "O"]}]),
        ("a\tO\n\xa0\tO\n", [{"tokens": ["a", "\xa0"], "tags": ["O", "O"]}]),
        ("\u3000 O\na B\n", [{"tokens": ["\u3000", "a"], "tags": ["O", "B"]}]),
        ("a\n\nb\nc\n", [{"tokens": ["a"]}, {"tokens": ["b", "c"]}]),
        ("-DOCSTART- -X- O O\n\na B C O\n", [pair("a", "O")]),
        ("-DOCSTART- O\na O\n-DOCSTART- O\n", [pair("a", "O")]),
    ],
)
def test_layouts(tmp_path, content, expected):
    path = write(tmp_path, "a.conll", content)
    assert read_values(path) == expected
    columns = open_records(path).columns
    assert [name for name in columns if not name.isdigit()] == list(expected[0])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# id = 1\n# text = x y\na\tO\n\n# id = 2\nb\tO\n", [pair("a", "O"), pair("b", "O")]),
        (
            "# id 7b\tdomain=en\na _ _ O\n\n# id 7c\tdomain=en\nb _ _ O\n",
            [pair("a", "O"), pair("b", "O")],
        ),
        ("# id 7b\tx\na\tO\n", [pair("a", "O")]),
        ("#begin document (x); part 000\na O\n\n#end document\n", [pair("a", "O")]),
        ("#tag\tO\nb\tO\n\n#\tO\n", [pair("#tag b", "O O"), pair("#", "O")]),
        ("#tag\tO\n\n#b\tO\n", [pair("#tag", "O"), pair("#b", "O")]),
        ("a O\n# O\n\n# O\nb O\n", [pair("a #", "O O"), pair("# b", "O O")]),
        ("a\n\n#tag\nb\n", [{"tokens": ["a"]}, {"tokens": ["#tag", "b"]}]),
        ("# \n\n# x\n\na\tO\n", [pair("a", "O")]),
        ("#new\na\tO\n\n# new\nb\tO\n", [pair("a", "O"), pair("b", "O")]),
        ("# newdoc\na X O\n", [pair("a", "O")]),
    ],
)
def test_comments_and_words_that_look_like_them(tmp_path, content, expected):
    assert read_values(write(tmp_path, "a.conll", content)) == expected


def test_comments_without_end_are_not_all_held(tmp_path, monkeypatch):
    monkeypatch.setattr(conll, "MAX_COMMENTS", 3)
    path = write(tmp_path, "a.conll", "#a O\n\n" * 9 + "b X O\n")
    found, report = read(path)
    assert [dict(record.values) for record in found] == [pair("#a", "O")] * 9
    assert "line 19 has 3 cells where there are 2 columns" in report.first_broken[0]


def test_universal_columns_are_known(tmp_path):
    lines = [("1-2", "du", "_"), ("1", "de", "ADP"), ("2", "le", "DET"), ("2.1", "nul", "X")]
    rows = [[number, word, "x", tag, *"abcde", "Gloss=y"] for number, word, tag in lines]
    content = "# sent_id = 1\n" + "".join("\t".join(row) + "\n" for row in rows)
    path = write(tmp_path, "a.conllu", content)
    assert read_values(path) == [pair("de le", "ADP DET")]
    (record,), _ = read(path)
    assert (record.values["5"], record.values["3"]) == (["a", "a"], ["x", "x"])
    words = "".join("\t".join(["w", *row[1:]]) + "\n" for row in rows)
    assert read_values(write(tmp_path, "b.conll", words)) == [pair("w w w w", "Gloss=y " * 4)]
    nine = "".join("\t".join(row[:9]) + "\n" for row in rows[1:3])
    assert read_values(write(tmp_path, "c.conll", nine)) == [pair("1 2", "e e")]


def test_columns_have_numbers(tmp_path):
    universal = (
        "# sent_id = 1\n"
        "1-2\tdu\t_\t_\n"
        "1\tde\tx\tADP\n"
        "2\tle\tx\tDET\n"
        "2.1\tnul\tx\tX\n"
        "3\t4-5\tx\tNUM\n"
    )
    path = write(tmp_path, "a.conllu", universal)
    (record,), _ = read(path)
    assert [record.values[name] for name in ("2", "tags")] == list(
        pair("de le 4-5", "ADP DET NUM").values()
    )
    path = write(tmp_path, "a.conll", "a NNP B-NP O\n4-5 NNP B-NP O\n")
    assert open_records(path).columns == ("tokens", "tags", "1", "2", "3", "4")
    (record,), _ = read(path)
    assert record.values["2"] == ["NNP", "NNP"]
    assert "5" not in record.values


def test_a_ragged_line_or_an_empty_cell_costs_its_sentence(tmp_path):
    content = "a\tO\nb\n\nc\tO\n\nd\tO\te\n\n\tO\n\nf\t \n\ng\tO\n"
    path = write(tmp_path, "a.conll", content)
    table = open_records(path, RecordSettings(max_broken=1))
    found = table.read(TagExample.build_parser(TagSettings(), table, needs_answer=True))
    assert [(one.words, one.place) for one in found] == [
        (("c",), f"{path}, line 4"),
        (("g",), f"{path}, line 12"),
    ]
    assert (table.report.num_rows, table.report.num_broken) == (6, 4)
    ragged = "cells where there are 2 columns between tabs, as the first line has them"
    assert table.report.first_broken == [
        f"{path}, line {line} has {fault}; the sentence from line {begin} on is left out"
        for line, begin, fault in (
            (2, 1, ragged.replace("cells", "1 cell")),
            (6, 6, f"3 {ragged}"),
            (8, 8, "an empty cell where tokens should be"),
            (10, 10, "an empty cell where tags should be"),
        )
    ]


def test_bytes_that_are_not_utf8_are_counted_once_a_sentence(tmp_path):
    content = b"a\xff\tO\nb\xff\tO\n\nc\tO\n\n\xe9\tO\n"
    found, report = read(write(tmp_path, "a.conll", content), encoding="utf-8")
    assert found[0].values["tokens"] == ["a\ufffd", "b\ufffd"]
    assert (len(found), report.num_undecodable) == (3, 2)


def test_a_sentence_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(conll, "MAX_ROW_BYTES", 1000)
    path = write(tmp_path, "a.conll", "a\tO\n" * 250 + "\n" + "a\tO\n" * 251)
    refuse(path, r"line 502 is in a sentence of more than 0 MiB; a blank line must stand between")


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, sentences):
    sentences = [[("a", "O"), *words] for words in sentences]
    lines = ["".join(f"{word}\t{tag}\n" for word, tag in words) for words in sentences]
    path = write(tmp_path_factory.mktemp("conll"), "a.conll", "\n".join(lines))
    assert read_values(path) == [
        {"tokens": [word for word, _ in words], "tags": [tag for _, tag in words]}
        for words in sentences
    ]
