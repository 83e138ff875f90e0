"""Records and what callers give, as sentences."""

import json
from unicodedata import category

import pytest

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError, ClassName, Record
from bertkit.data.tables.records import open_records
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.examples import TagExample, is_blank, list_warnings, read_tags, warn_of_plain
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer


def settle(*sentences, known=()):
    """Read sentences of tags as one file."""
    examples = [TagExample(words=("w",) * len(tags), tags=tags) for tags in sentences]
    report = RowReport("t.jsonl", num_rows=len(examples))
    return TagExample.settle(examples, report, TagSettings(), known), report


@pytest.mark.parametrize("mark", ["-100", "-1"])
def test_words_may_have_no_tag(mark):
    found, report = settle((mark, "0", "1"), (mark, mark), ("1", "0"))
    assert [example.tags for example in found] == [("", "0", "1"), ("1", "0")]
    assert [example.label_names for example in found] == [("0", "1"), ("1", "0")]
    assert report.notes[0].startswith(f"3 words with {mark} have no tag: they are neither learned")
    assert report.num_unlabeled == 1
    assert list_warnings(found, "BIO")
    assert settle((mark, "0"), known=(mark, "0"))[0][0].tags == (mark, "0")


def test_tags_without_names_are_told():
    numbers = [TagExample(words=("a", "b"), tags=("0", "12"))]
    (line,) = warn_of_plain(numbers)
    assert line.startswith("tags are numbers, so words are tagged independently and no entities")
    assert warn_of_plain([TagExample(words=("a", "b"), tags=("NOUN", "X"))]) == []


def test_marks_that_are_tags_stay():
    tags = ("NOUN", "-", ",", "VERB")
    assert settle(tags)[0][0].tags == tags
    assert settle(("NOUN", "_", "VERB"))[0][0].tags == ("NOUN", "", "VERB")


@pytest.mark.parametrize("mark", ["-", "_"])
def test_a_sign_may_be_the_tag_outside_of_entities(mark):
    tags = (("B-town", "I-town", mark, "B-town"), ("I-town", mark))
    assert [example.tags for example in settle(*tags)[0]] == [*tags]
    assert settle(("B-town", "O", mark, "O"))[0][0].tags == ("B-town", "O", "", "O")
    mostly = ("town", "day", mark, mark)
    assert settle(mostly)[0][0].tags == mostly


def read(path, *, needs_answer=True, **settings):
    table = open_records(path)
    parse = TagExample.build_parser(TagSettings(**settings), table, needs_answer=needs_answer)
    return [parse(record) for record in table.records()]


def write(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_conll_is_read_with_its_tags_or_without(tmp_path):
    path = tmp_path / "train.conll"
    path.write_text("Ada B-PER\nran O\n\nBob B-PER\n")
    first, second = read(path)
    assert first == TagExample(words=("Ada", "ran"), tags=("B-PER", "O"), place=f"{path}, line 1")
    assert (second.words, second.tags, second.place) == (("Bob",), ("B-PER",), f"{path}, line 4")
    (first, _) = read(path, needs_answer=False)
    assert (first.words, first.tags) == (("Ada", "ran"), None)
    path.write_text("Ada\nran\n")
    assert [one.words for one in read(path, needs_answer=False)] == [("Ada", "ran")]
    message = "has one column, the words, and no tags; put a tab "
    with pytest.raises(InputError, match=message):
        read(path)
    path = write(tmp_path / "a.jsonl", {"tokens": ["Ada"]})
    with pytest.raises(
        InputError, match=r"no column for the label, such as tags; name one of .*--label-column"
    ):
        read(path)


@pytest.mark.parametrize(
    ("words", "tags"), [("tokens", "tags"), ("words", "ner_tags"), ("tokens", "pos_tags")]
)
def test_usual_columns_are_found(words, tags, tmp_path):
    path = write(tmp_path / "a.jsonl", {"id": 1, words: ["Ada", 1843], tags: [1, 0]})
    assert [(one.words, one.tags) for one in read(path)] == [(("Ada", "1843"), ("1", "0"))]


def test_columns_may_be_named(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": ["a"], "tags": ["x"], "w": ["b"], "t": ["y "]})
    (example,) = read(path, text_column="w", label_column="t")
    assert (example.words, example.tags) == (("b",), ("y",))
    with pytest.raises(InputError, match="has no column v; name one of its columns with --text"):
        read(path, text_column="v")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tags": ["O"]}, "has no tokens"),
        ({"tokens": "a b", "tags": ["O", "O"]}, "has no list in tokens: 'a b'"),
        ({"tokens": ["a", None], "tags": ["O", "O"]}, "has something else than texts in tokens"),
        ({"tokens": ["a"], "tags": [True]}, "has something else than texts in tags"),
        ({"tokens": ["a", "b"], "tags": ["O"]}, "has 2 words and 1 tag"),
        ({"tokens": [], "tags": []}, "has no words"),
        ({"tokens": ["a"], "tags": [" "]}, "has an empty tag"),
    ],
)
def test_broken_records_are_told_with_their_place(values, message, tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": [], "tags": []})
    parse = TagExample.build_parser(TagSettings(), open_records(path), needs_answer=True)
    with pytest.raises(BrokenRowError, match=f"^line 7 {message}"):
        parse(Record(values, "line 7"))


def test_without_answers_a_text_will_do(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ada ran\n\n")
    for settings in ({}, {"text_column": "w"}):
        found = read(path, needs_answer=False, **settings)
        assert [(one.text, one.words) for one in found] == [("Ada ran", None), ("", None)]
    path = write(tmp_path / "a.jsonl", {"text": "Ada", "w": ["Bob"]}, {"text": ["Cleo"]})
    found = read(path, needs_answer=False)
    assert [(one.text, one.words) for one in found] == [("Ada", None), (None, ("Cleo",))]
    with pytest.raises(BrokenRowError, match="line 2 has no w"):
        read(path, needs_answer=False, text_column="w")
    with pytest.raises(InputError, match="no column for the text"):
        read(path)
    parse = TagExample.build_parser(TagSettings(), open_records(path), needs_answer=False)
    with pytest.raises(BrokenRowError, match="has no list in text: 3"):
        parse(Record({"text": 3}, "here"))


def test_odd_sentences_are_counted_and_the_first_is_named():
    examples = [
        TagExample(words=("Ada", "ran"), tags=("B-PER", "O"), place="line 1"),
        TagExample(words=("Ada", "\u200b"), tags=("I-PER", "O"), place="line 4"),
        TagExample(words=("", "ran"), tags=("B-PER", "O"), place="line 7"),
    ]
    blank = (
        "2 sentences have words without a letter or sign; they are read as unknown; first line 4"
    )
    assert list_warnings(examples, None) == [blank]
    assert list_warnings(examples, "BIO") == [
        blank,
        (
            "1 sentence has tags that don't follow BIO, such as an I- that begins an entity; they"
            " are decoded as by seqeval; first line 4"
        ),
    ]
    assert list_warnings(examples[:1], "BIO") == []
    assert list_warnings([TagExample(text="Ada")], "BIO") == []


def test_tags_of_people_become_those_of_a_scheme():
    assert read_tags(["O", "I-PER", "E-PER", "PER"], "BIO") == ["O", "B-PER", "I-PER", "B-'PER'"]
    assert read_tags(["o", "i_PER", "PER-E"], "BIO") == ["O", "B-PER", "I-PER"]


def test_a_word_is_blank_if_the_tokenizer_drops_it():
    codes = (*range(0x800), *range(0x2000, 0x3100), 0xFFFD, 0xD800, 0xE0001, 0xE000)
    signs = list(map(chr, codes))
    signs = [sign for sign in signs if category(sign) not in {"Mn", "Cn"}]
    tokenizer = Tokenizer(SPECIAL_TOKENS)
    found = dict(zip(signs, tokenizer.piece_ids(signs), strict=True))
    assert [sign for sign in signs if is_blank(sign)] == [sign for sign in signs if not found[sign]]


def test_a_tag_as_long_as_a_text_breaks_its_row(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": ["a"], "tags": ["x" * 1001]})
    with pytest.raises(BrokenRowError, match=r"line 1 has 1,001 characters in tags.*--label-col"):
        read(path)


def test_classes_have_their_names_unless_numbers_are_known():
    tags = (ClassName("O", 0), ClassName("B-town", 1))
    table = open_records([{"tokens": ["a", "b"], "tags": tags}])
    parse = TagExample.build_parser(TagSettings(), table, needs_answer=True)
    (example,) = table.read(parse)
    for known, expected in (((), ("O", "B-town")), (("0", "1"), ("0", "1"))):
        ((found,), _) = settle(example.tags, known=known)
        assert found.tags == expected
