"""Where texts and pairs stand in a table, and what callers give."""

from dataclasses import replace

import pytest
from pydantic import ValidationError
from tests.unit.tasks.small import TOKENIZER, record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.records import open_records
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.texts import (
    Texts,
    build_text_parser,
    encode_texts,
    find_text_columns,
    learn_pairs,
    read_texts,
)
from bertkit.tokenization.long_texts import MAX_WINDOWS


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("text", "label"), ("text", None)),
        (("id", "sentence", "label"), ("sentence", None)),
        (("premise", "hypothesis", "label"), ("premise", "hypothesis")),
        (("question1", "question2", "is_duplicate"), ("question1", "question2")),
        (("question", "sentence", "label"), ("question", "sentence")),
        (("text", "premise", "hypothesis"), ("text", None)),
        (("label", "text_pair", "text"), ("text", "text_pair")),
        (("text", "pair"), ("text", "pair")),
        (("query", "passage", "score"), ("query", "passage")),
        (("query", "document"), ("query", "document")),
        ((), ("text", None)),
    ],
)
def test_usual_names(columns, expected):
    assert find_text_columns(TextSettings(), table_of(*columns)) == expected


def test_what_is_named_is_taken_and_nothing_else_guessed():
    table = table_of("premise", "hypothesis", "body")
    assert find_text_columns(TextSettings(text_column="premise"), table) == ("premise", None)
    assert find_text_columns(TextSettings(pair_column="body"), table) == ("premise", "body")
    with pytest.raises(InputError, match="no column other"):
        find_text_columns(TextSettings(pair_column="other"), table)


def test_a_layout_says_which_is_which():
    table = table_of("#1 String", "#2 String", text="#1 String", pair="#2 String")
    assert find_text_columns(TextSettings(), table) == ("#1 String", "#2 String")
    parse = build_text_parser(TextSettings(), table)
    assert parse(record_of(**{"#1 String": "a", "#2 String": "b"})) == Texts("a", "b")
    single = table_of("sentence", "premise", "hypothesis", text="sentence")
    assert find_text_columns(TextSettings(), single) == ("sentence", None)


def test_a_first_row_without_a_second_text_is_a_broken_row_of_pairs():
    rows = [{"question1": "a"}, *({"question1": "a", "question2": f"b{n}"} for n in range(99))]
    table = open_records(rows)
    texts = table.read(build_text_parser(TextSettings(), table))
    assert texts == [Texts("a", f"b{n}") for n in range(99)]
    assert table.report.summary_lines()[1] == "  train, row 1 has no question2"


def test_a_model_of_pairs_asks_for_both():
    settings = learn_pairs(TextSettings(), [Texts("a", "b")])
    assert settings.pairs
    assert read_texts(("a", "b"), "here", settings) == Texts("a", "b")
    with pytest.raises(InputError, match="here: the model reads pairs; give a tuple of two"):
        read_texts("a", "here", settings)
    pairs, single = table_of("premise", "hypothesis"), table_of("text", "label")
    parse = build_text_parser(settings, pairs)
    assert parse(record_of(premise="a", hypothesis="b")) == Texts("a", "b")
    for table in (single, replace(table_of("text"), format="text")):
        with pytest.raises(InputError, match="has one text a row where pairs are read; name"):
            build_text_parser(settings, table)


def test_a_model_of_single_texts_refuses_pairs():
    settings = learn_pairs(TextSettings(), [Texts("a")])
    assert settings.pairs is False
    assert read_texts("a", "here", settings) == Texts("a")
    with pytest.raises(InputError, match="here: the model reads single texts, and this is a pair"):
        read_texts(("a", "b"), "here", settings)
    table = table_of("text", "text_pair")
    with pytest.raises(InputError, match="has pairs of texts, in text and text_pair, where single"):
        build_text_parser(settings, table)
    parse = build_text_parser(settings.model_copy(update={"text_column": "text"}), table)
    assert parse(record_of(text="a", text_pair="b")) == Texts("a")


def test_a_text_a_line_is_read_whatever_the_column_was_called_in_training():
    lines = replace(table_of("text"), format="text")
    assert find_text_columns(TextSettings(text_column="body"), lines) == ("text", None)
    with pytest.raises(InputError, match="has no column premise"):
        find_text_columns(TextSettings(text_column="premise", pair_column="hypothesis"), lines)


LONG = "the a cat dog fox saw lost hat not the a cat"  # 12 tokens
PAIRS = [("the cat", "a dog"), (LONG, "fox"), ("fox", LONG), (LONG, LONG), ("", ""), ("", LONG)]


def read(settings: TextSettings, *texts: str):
    (reading,) = encode_texts([Texts(*texts)], settings, TOKENIZER)
    shown = [
        " ".join(TOKENIZER.vocabulary[id_] for id_ in sequence.ids)
        for sequence in reading.sequences
    ]
    return shown, reading.is_cut


@pytest.mark.parametrize("max_length", [3, 4, 8, 11, 64])
def test_the_beginning_is_what_the_tokenizer_keeps(max_length):
    settings = TextSettings(max_length=max_length)
    texts = [Texts(*pair) for pair in PAIRS] + [Texts(LONG), Texts(""), Texts("cats[SEP] \ud800")]
    for each, reading in zip(texts, encode_texts(texts, settings, TOKENIZER), strict=True):
        whole = TOKENIZER.encode(*each)
        encoding = TOKENIZER.encode(*each, max_length=max_length)
        (sequence,) = reading.sequences
        assert (sequence.ids, sequence.segments) == (encoding.ids, encoding.token_type_ids)
        assert reading.is_cut == (len(whole.ids) > len(encoding.ids))


def test_windows_overlap_and_leave_nothing_out():
    settings = TextSettings(max_length=8, long_texts="windows")
    shown, is_cut = read(settings, LONG)
    assert shown == [
        "[CLS] the a cat dog fox saw [SEP]",
        "[CLS] dog fox saw lost hat not [SEP]",
        "[CLS] lost hat not the a cat [SEP]",
    ]
    assert not is_cut
    assert read(settings, "the cat") == (["[CLS] the cat [SEP]"], False)
    wide, _ = read(settings.model_copy(update={"stride": 100}), LONG)
    assert len(wide) == 2  # never past what a window holds
    many, is_cut = read(settings, "the " * 1000)
    assert (len(many), is_cut) == (MAX_WINDOWS, True)


def test_of_a_pair_of_long_texts_one_is_read_in_windows():
    settings = TextSettings(max_length=8, long_texts="windows", stride=4)
    shown, is_cut = read(settings, LONG, LONG)
    assert is_cut
    assert shown[0] == "[CLS] the a cat [SEP] the a [SEP]"
    assert shown[-1].endswith("the a cat [SEP] the a [SEP]")


def test_windows_need_room():
    with pytest.raises(ValidationError, match="must be at least 8 for windows"):
        TextSettings(max_length=7, long_texts="windows")
