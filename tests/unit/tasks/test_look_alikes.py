"""Labels that look alike are named, and those that may be typing errors."""

import unicodedata

import pytest

from bertkit.tasks.look_alikes import LETTERS, describe_look_alikes, find_typing_errors


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


@pytest.mark.parametrize(
    ("rare", "frequent"),
    [
        ("Wissenschft", "Wissenschaft"),  # left out
        ("wissenscchaft", "Wissenschaft"),  # added, and in another case
        ("Wissensvhaft", "Wissenschaft"),  # exchanged
        ("Wissenshcaft", "Wissenschaft"),  # swapped
        ("Wisenschfat", "Wissenschaft"),  # two errors
        ("crdit card", "credit card"),
        ("credit-card", "credit card"),
        ("creditcard", "credit card"),
    ],
)
def test_typing_errors_are_named(rare, frequent):
    (line,) = describe_look_alikes({frequent: 120, "else": 70, rare: 2})
    assert line.startswith(
        f"labels that may be typing errors: '{rare}' (2) may be '{frequent}' (120)."
    )
    assert find_typing_errors({frequent: 9, rare: 2}) == []  # not rare beside it


@pytest.mark.parametrize(
    ("rare", "frequent"),
    [
        ("negative", "positive"),
        ("unlikely", "likely"),  # the first letter is right in typing errors
        ("I-PER", "B-PER"),
        ("type b", "type a"),  # short words differ by as much
        ("spring", "string cheese"),
        ("class 2", "class 1"),
        ("2018", "2019"),
        ("sport", "sprout"),  # two letters of a short word
        ("北海大学", "北京大学"),
        ("Sport", "sport"),  # looks alike, which is another line
    ],
)
def test_other_rare_labels_are_no_typing_errors(rare, frequent):
    assert find_typing_errors({frequent: 120, rare: 1}) == []


def test_labels_that_a_model_lacks_may_be_typing_errors_of_its_own():
    known = {"positive": 0, "negative": 0, "positve": 0}
    (line,) = describe_look_alikes({"negatve": 9, "positve": 1, "negative": 1}, known)
    assert "'negatve' (9) may be 'negative' (1)." in line
    assert "positve" not in line


def test_typing_errors_of_many_labels_are_found():
    counts = {f"label {chr(97 + number % 26) * 5} {number}": 9 for number in range(2_000)}
    counts |= {"special": 90, "speical": 1, "spceail": 1}  # the last has two errors
    assert find_typing_errors(counts) == [("speical", "special")]
