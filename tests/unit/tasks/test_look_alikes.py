"""Labels that look alike are named."""

import unicodedata

import pytest

from bertkit.tasks.look_alikes import LETTERS, describe_look_alikes


@pytest.mark.parametrize(
    ("label", "other", "difference"),
    [
        ("Good", "good", "case"),
        ("STRASSE", "straße", "case"),
        ("good", "go\u200bod", "characters that show nothing"),
        ("good", "good\ufe0f", "characters that show nothing"),
        ("caf\u00e9", "cafe\u0301", "Unicode form"),
        ("good", "ｇｏｏｄ", "Unicode form"),
        ("sci-fi", "sci–fi", "dashes or quotes"),
        ("can't", "can’t", "dashes or quotes"),
        ("good", "gооd", "letters of another script"),
        ("BETA", "ΒΕΤΑ", "letters of another script"),
        ("very good", "very  good", "blanks"),
        ("very good", "very\u00a0good", "Unicode form"),
    ],
)
def test_labels_that_look_alike_are_named_with_their_counts(label, other, difference):
    (line,) = describe_look_alikes({label: 1200, "else": 7, other: 3})
    assert "(1,200) and '" in line
    assert f"(3) differ in {difference}." in line
    assert "else" not in line
    assert "\n" not in line


def test_other_labels_are_left_alone():
    labels = ["resume", "résumé", "a", "ä", "co-op", "coop", "1", "l", "O", "0", "B-PER", "I-PER"]
    assert describe_look_alikes(dict.fromkeys(labels, 1)) == []
    assert describe_look_alikes({}) == []


def test_unknown_labels_are_compared_with_those_of_a_model():
    counts = {"good": 9, "Bad": 2, "new": 1}
    (line,) = describe_look_alikes(counts, {"good": 0, "bad": 0, "GOOD": 0})
    assert "'Bad' (2) and 'bad' differ in case." in line
    assert "good" not in line


def test_a_few_of_many_pairs_are_named_and_none_is_compared_with_all():
    counts = {f"{word} {number}": 1 for number in range(50_000) for word in ("Label", "label")}
    (line,) = describe_look_alikes(counts)
    assert "; and 49,997 more. Use the same spelling" in line
    assert len(line) < 400


def test_letters_of_the_table_are_of_other_scripts_and_stand_for_latin_ones():
    for letter, latin in LETTERS.items():
        script = unicodedata.name(chr(letter)).partition(" SMALL LETTER")[0]
        assert script in {"CYRILLIC", "GREEK"}
        assert chr(latin).isascii()
        assert chr(latin).islower()
