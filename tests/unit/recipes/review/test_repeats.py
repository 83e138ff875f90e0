"""Repeats: equal, folded and near texts in groups, in several files, and what isn't a repeat."""

import itertools

import numpy as np
import pytest

from bertkit.recipes.review import repeats
from bertkit.recipes.review.repeats import (
    Text,
    compare,
    describe_repeats,
    find_repeats,
    find_threshold,
)

TEXT = (
    "the delivery arrived late and one of the boxes was open so I want my money back please"
    " because nobody answered when we called about it on Monday but your shop has been good before"
)
WORDS = TEXT.split()


def write_texts(number: int, seed: int = 0) -> list[str]:
    """Different sentences of 8 to 20 words, of which some have invented ones."""
    generator = np.random.default_rng(seed)
    letters = [*"abcdefghijklmnopqrstuvwxyz"]
    invented = ["".join(generator.choice(letters, 6)) for _ in range(500)]
    return [
        " ".join(generator.choice([*WORDS, *invented], generator.integers(8, 21)).tolist())
        for _ in range(number)
    ]


def find(texts: list[Text], labels: str | None = None, files: str | None = None):
    """The groups of rows, whose labels and files are a character each."""
    return find_repeats(
        texts,
        [*labels] if labels else [None] * len(texts),
        [int(each) for each in files or ""] or [0] * len(texts),
    )


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Great film!", "great film"),
        ("it's  so\tgood", "It’s so good…"),
        ("Stra\u00dfe", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
        ("so\u00adft ware\u200b", "soft ware"),
        ("\uff21\uff22\uff23", "abc"),
    ],
)
def test_texts_are_equal_without_case_marks_and_blanks(text, other):
    (group,) = find([text, "something else entirely", other])
    assert (group.members, group.kind) == ((0, 2), "folded")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("3.5", "35"),
        ("C++", "C"),
        ("good 😀", "good 😡"),
        ("schön", "schon"),
        ("?", "!"),
        ("", " "),
    ],
)
def test_texts_that_mean_different_things_are_not_repeats(text, other):
    assert find([text, other]) == []


def test_equal_texts_are_a_group_and_those_with_different_labels_come_first():
    groups = find(["a b", "c d", "A B", "a b", "c d", "e"], "xyxyzx")
    assert [group.members for group in groups] == [(1, 4), (0, 2, 3)]
    assert [group.kind for group in groups] == ["equal", "folded"]
    assert [group.conflict for group in groups] == [(0, 1), (0, 2)]
    assert find(["a b", "a b"], "xx")[0].conflict is None


def exchange_word(text: str, word: str = "instead", place: int = 4) -> str:
    words = text.split()
    return " ".join([*words[:place], word, *words[place + 1 :]])


EDITS = {
    "a letter left out": lambda text: text[:20] + text[21:],
    "letters exchanged": lambda text: text[:20] + text[20:22][::-1] + text[22:],
    "a word left out": lambda text: exchange_word(text, ""),
    "a word added": lambda text: exchange_word(text, f"{text.split()[4]} instead"),
    "another word": exchange_word,
    "words exchanged": lambda text: " ".join([*text.split()[1::-1], *text.split()[2:]]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_text_is_near_its_source_alone(edit):
    texts = [text for text in write_texts(300) if len(text.split()) > 14]
    (group,) = find([*texts, EDITS[edit](texts[0])])
    assert group.members == (0, len(texts))
    assert group.kind in {"near", "folded"}


def test_sentences_of_the_same_words_are_not_near():
    assert not find(write_texts(1000))


def test_the_threshold_falls_with_the_length_of_texts_and_finds_most_edits():
    long = [" ".join(pair) for pair in itertools.pairwise(write_texts(400))]
    short = [" ".join(text.split()[:9]) for text in long]
    thresholds = find_threshold(short), find_threshold(long)
    assert repeats.THRESHOLDS[0] <= thresholds[0] < thresholds[1] <= repeats.THRESHOLDS[1]
    edits = [exchange_word(text, place=number % 9) for number, text in enumerate(long)]
    found = np.mean([compare(*pair) >= thresholds[1] for pair in zip(long, edits, strict=True)])
    assert found > 0.8


def test_every_text_of_a_row_must_be_near():
    context = write_texts(1)[0]
    rows = [
        ("who was late then", context),
        ("what did the box cost", context),
        ("who was late then?", context),
    ]
    (group,) = find(rows)
    assert group.members == (0, 2)
    assert group.kind == "folded"


def test_a_template_is_not_a_group_of_repeats():
    names = ["".join(letters) for letters in itertools.product("bdfg", "aeio", "klmn")]
    texts = [
        f"Which is the largest of all cities in the country of {name} today?" for name in names
    ]
    (group,) = find([*texts, *write_texts(20)], "xy" * 42)
    assert (group.members, group.kind) == (tuple(range(64)), "template")
    assert group.conflict is None
    (line,) = describe_repeats([group], ["a.csv"])
    assert line.startswith("64 rows follow 1 template: more than 20 texts that differ by")


def test_rows_of_other_files_that_stand_in_the_first_are_counted():
    near = "the delivery arrived late and one of the large boxes was open"
    texts = ["a b", "A b", "c d", near, "a b", near.replace("large ", ""), "e f", "a b"]
    groups = find(texts, "xyxxxxxx", "00001112")
    leak = "; who trains on one file can't measure by these rows"
    assert describe_repeats(groups, ["train.csv", "dev.csv", "test\x1b.csv"]) == [
        f"1 row of dev.csv repeats one of train.csv{leak}",
        f"1 row of test␛.csv repeats one of train.csv{leak}",
        f"1 row of test␛.csv repeats one of dev.csv{leak}",
        "1 row of dev.csv repeats one of train.csv but for about a word",
        "1 row of train.csv repeats an earlier one, with another label",
    ]


def test_a_row_counts_once():
    texts = ["one two three four five six seven", "one two three four five six seven"]
    texts += ["one two three four five six sevens"] * 2
    groups = find(texts, "xxxy")
    assert [group.members for group in groups] == [(2, 3), (0, 1, 2, 3), (0, 1)]
    assert describe_repeats(groups, ["a"]) == [
        "2 rows repeat an earlier one, 1 of them with another label",
        "1 row repeats an earlier one but for about a word",
    ]


def test_no_texts_have_no_repeats():
    assert find([]) == []
    assert describe_repeats([], ["a"]) == []


def test_texts_in_blocks_have_the_same_groups(monkeypatch):
    texts = write_texts(60)
    texts += [exchange_word(text) for text in texts[:30]]
    whole = find(texts)
    monkeypatch.setattr(repeats, "CHARACTERS_AT_ONCE", 100)
    monkeypatch.setattr(repeats, "PAIRS_AT_ONCE", 3)
    assert find(texts) == whole
    assert len(whole) > 20
