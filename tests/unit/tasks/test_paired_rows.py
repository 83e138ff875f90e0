"""Which columns are queries, passages, negatives and scores, and what a row has in them."""

import pytest
from tests.unit.tasks.small import record_of

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError
from bertkit.data.tables.records import open_records
from bertkit.tasks.labeled_table import check_columns
from bertkit.tasks.paired_rows import PairedColumns, PairedRow
from bertkit.tasks.settings import PairedSettings


def find(*rows, **settings):
    table = open_records(list(rows), split="train")
    return PairedColumns.find(PairedSettings(**settings), table), table


def columns_of(names, **settings):
    found, _ = find(dict.fromkeys(names.split(), "0.5"), **settings)
    return found.query, found.passage, found.negatives, found.score


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("query passage", ("query", "passage", (), None)),
        ("anchor positive negative", ("anchor", "positive", ("negative",), None)),
        ("positive anchor", ("anchor", "positive", (), None)),
        ("Question Answer id", ("Question", "Answer", (), None)),
        ("query pos neg_1 neg_2", ("query", "pos", ("neg_1", "neg_2"), None)),
        ("query document hard_negative", ("query", "document", ("hard_negative",), None)),
        ("sentence1 sentence2 score", ("sentence1", "sentence2", (), "score")),
        ("text1 text2 label", ("text1", "text2", (), "label")),
        ("faq help", ("faq", "help", (), None)),
        ("faq help score", ("faq", "help", (), "score")),
        ("query help negative", ("query", "help", ("negative",), None)),
    ],
)
def test_columns_by_their_names_or_as_those_that_are_left(names, found):
    assert columns_of(names) == found


def test_named_columns_come_first():
    names = {"text_column": "b", "pair_column": "a", "label_column": "c", "negative_column": "d"}
    assert columns_of("a b c d query passage", **names) == ("b", "a", ("d",), "c")


def test_tuples_are_pairs_triplets_or_pairs_with_a_score():
    assert find(("a", "b"))[0] == PairedColumns("text", "label")
    assert find(("a", "b", "c"))[0] == PairedColumns("text", "pair", ("label",))
    assert find(("a", "b", 0.5))[0] == PairedColumns("text", "pair", (), "label")


NLI = "text1,text2,label\n,b,\na,b,entailment\na,c,neutral\nd,e,1\n"


def test_labels_that_are_words_are_neither_scores_nor_negatives(tmp_path):
    (tmp_path / "nli.csv").write_text(NLI)
    table = open_records(tmp_path / "nli.csv", split="train")
    message = "label has words, such as entailment, and labels aren't scores; write a number for"
    with pytest.raises(InputError, match=message):
        check_columns(PairedSettings(), table, needs_answer=True)
    check_columns(PairedSettings(), table, needs_answer=False)  # a reranker's input


@pytest.mark.parametrize("rows", ["a,b,\nc,d,\n", "a,b,1\nc,d,no\n"])
def test_labels_that_are_empty_or_mostly_numbers_are_no_words(tmp_path, rows):
    (tmp_path / "rows.csv").write_text(f"text1,text2,label\n{rows}")
    table = open_records(tmp_path / "rows.csv", split="train")
    assert PairedColumns.find(PairedSettings(), table).negatives == ()


def test_a_note_says_which_they_are_once():
    found, table = find({"faq": "a", "help": "b", "neg": "c"})
    PairedColumns.find(PairedSettings(), table)
    assert table.report.notes == ["columns: query faq, passage help, negatives neg"]
    assert found.describe() == table.report.notes[0]
    scored, _ = find({"text1": "a", "text2": "b", "score": 1})
    assert scored.describe() == "columns: texts text1 and text2, score score"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "a"}, "train has no column of passages, such as passage, positive, pos, docu"),
        ({"passage": "a", "b": "c", "d": "e"}, "no column of queries, such as query, anchor, que"),
        ({"a": "b", "c": "d", "e": "f"}, "--text-column and --pair-column: a, c, e"),
    ],
)
def test_a_missing_column_is_an_error_before_anything_is_loaded(row, message):
    with pytest.raises(InputError, match=message):
        check_columns(PairedSettings(), open_records([row], split="train"), needs_answer=True)


def test_plain_text_has_no_pairs(tmp_path):
    (tmp_path / "texts.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"plain text, without a column for the pair"):
        check_columns(
            PairedSettings(),
            open_records(tmp_path / "texts.txt", split="train"),
            needs_answer=True,
        )


COLUMNS = PairedColumns("q", "p", ("n",), "s")


@pytest.mark.parametrize(
    ("cell", "negatives"),
    [
        *(("c", ("c",)), (["c", "d"], ("c", "d")), ('["c", "d"]', ("c", "d"))),
        *((["c", " "], ("c",)), ("", ()), (None, ()), ([], ()), ("[]", ())),
    ],
)
def test_negatives_are_a_text_or_a_list(cell, negatives):
    row = COLUMNS.read(record_of(q="a", p="b", n=cell, s="2.5"))
    assert row == PairedRow("a", "b", negatives, 2.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": " "}, "line 2 has an empty text in q"),
        ({"p": None}, "line 2 has an empty text in p"),
        ({"p": 3}, "line 2 has int in p where a text should be"),
        ({"n": 3}, "line 2 has 3 in n where a text or a list of them should be"),
        ({"n": ["c", 3]}, "where a text or a list of them should be"),
        ({"s": "high"}, "line 2 has 'high' in s where a number"),
        ({"s": "nan"}, "line 2 has 'nan' in s where a number"),
    ],
)
def test_broken_rows(changes, message):
    with pytest.raises(BrokenRowError, match=message):
        COLUMNS.read(record_of(**{"q": "a", "p": "b", "n": "c", "s": 1, **changes}))


def test_scores_may_have_decimal_commas():
    columns = PairedColumns("q", "p", (), "s", ",")
    assert columns.read(record_of(q="a", p="b", s="0,5")).score == 0.5
