"""Pieces become the text that they were made of, as far as counting can tell."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.closeness import close
from tests.vocabularies import train_vocabulary

from bertkit.base.errors import DamagedFileError
from bertkit.decoders import detokenization
from bertkit.decoders.detokenization import (
    Spacing,
    is_ideograph,
    is_mark,
    join_word_pieces,
    split_chunk,
)
from bertkit.decoders.seq2seq.pairs import read_pairs
from bertkit.tokenization.settings import CASED, VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer

ENGLISH = [
    "The man's dog wasn't there, and the dogs' owner (a lady) left.",
    'A sign says "Stop now" and another, "Go!" He isn\'t well-known; she\'s at home.',
    "It costs 1,000 dollars, or 3.5 percent. At 10:30 they'll see 2 cats, 3 dogs.",
    "In 2016, 5 men came. Then 3 of them left with Mr. Hill's 12,500 and 2.5 eggs.",
]
GERMAN = [
    "Ein Schild sagt „Halt“, und „ja“ steht (klein) darunter: 3,5 von 1.000 Hand- und Fußbällen.",
    "Die Obst- und Gemüsehändlerin kauft T-Shirts; „nein“, sagt sie, „nie“!",
]
FRENCH = [
    "L'homme dit : « Oui ! » et l'autre « non » ; qu'est-ce que c'est ? Aujourd'hui, rien.",
    "Une femme (d'un certain âge) crie : « Là-bas ! » C'est l'heure ; va-t-il ?",
]


def split(text: str) -> list[str]:
    return [word for chunk in text.split() for word in split_chunk(chunk)]


def train(texts: list[str], size: int = 300) -> Tokenizer:
    settings = VocabularySettings(vocab_size=size, **CASED.model_dump())
    return Tokenizer(train_vocabulary(texts, settings), CASED)


def test_letters_that_an_uncased_vocabulary_took_apart_are_whole_again():
    text = "한국어 문장"
    settings = VocabularySettings(vocab_size=100, min_frequency=1)
    tokenizer = Tokenizer(train_vocabulary([text], settings))
    (row,) = tokenizer.piece_ids([text])
    assert Spacing().join([tokenizer.vocabulary[id_] for id_ in row]) == text


def share_of_exact(texts: list[str], spacing: Spacing, tokenizer: Tokenizer) -> float:
    ids = tokenizer.piece_ids(texts)
    joined = [spacing.join([tokenizer.vocabulary[id_] for id_ in row]) for row in ids]
    return sum(map(str.__eq__, joined, texts)) / len(texts)


@pytest.mark.parametrize("texts", [ENGLISH, GERMAN, FRENCH], ids=["en", "de", "fr"])
def test_what_was_counted_comes_back(texts):
    spacing = Spacing.fit(texts * 5)
    assert [spacing.join(split(text)) for text in texts] == texts
    assert share_of_exact(texts, spacing, train(texts)) == 1.0


def test_the_same_marks_stand_otherwise_in_other_languages():
    english, french = Spacing.fit(ENGLISH * 5), Spacing.fit(FRENCH * 5)
    assert english.join(["What", "?"]) == "What?"
    assert french.join(["Quoi", "?"]) == "Quoi ?"
    assert english.join(split("the cat's")) == "the cat's"
    assert french.join(split("l'eau")) == "l'eau"
    assert english.join(split("the dogs' owner")) == "the dogs' owner"


def test_quotes_come_in_pairs_whatever_is_in_them():
    spacing = Spacing.fit(['He said "a b" to her. She said "c" twice, and "d e".'] * 5)
    for text in ('"x" and "y z" and "w"', 'We read "no one" on "two" signs.'):
        assert spacing.join(split(text)) == text
    spacing = Spacing.fit(["Sie sagt „a b“ laut. Er sagt „c“ und „d“."] * 5)
    assert spacing.join(split("Wir lesen „zwei Wörter“ und „eins“.")) == (
        "Wir lesen „zwei Wörter“ und „eins“."
    )


def test_numbers_are_known_by_how_many_digits_they_have():
    spacing = Spacing.fit(["We paid 1,000 for 1, 2 or 3, and 12,500 for 4, 5.", "Ok, yes."] * 5)
    assert spacing.join(split("She has 7, 8 and 250,000.")) == "She has 7, 8 and 250,000."


def test_what_was_never_counted_stands_as_its_kind_does():
    text = 'He (a man) said: "no, [not] I", and/or 5% of $3; isn\'t it?'
    assert Spacing().join(split(text)) == text
    assert Spacing().join(split("¿Qué? ¡Sí!")) == "¿Qué? ¡Sí!"
    assert Spacing().join(split("a & b snake_case x-ray")) == "a & b snake_case x-ray"


def test_chinese_stands_without_blanks_unless_it_is_counted_otherwise():
    assert Spacing().join(split("我们有三只猫。")) == "我们有三只猫。"
    assert Spacing.fit(["我 们 有 三 只 猫"] * 5).join(split("三只猫")) == "三 只 猫"


def test_pieces_are_joined_to_words_and_special_tokens_are_none():
    pieces = ["[CLS]", "un", "##believ", "##able", ".", "[SEP]", "[PAD]"]
    assert join_word_pieces(pieces) == ["unbelievable", "."]
    assert join_word_pieces(["##ing", "[UNK]", "##s"]) == ["ing", "\ufffds"]
    assert Spacing().join(["A", "[UNK]", ",", "[MASK]", "yes"]) == "A \ufffd, yes"
    assert Spacing().join([]) == ""
    assert Spacing().join(["[PAD]", "##"]) == "##"


def test_it_goes_through_json():
    spacing = Spacing.fit(ENGLISH * 5)
    assert spacing.rules
    assert Spacing.from_dict(json.loads(json.dumps(spacing.to_dict()))) == spacing
    assert Spacing.fit(reversed(ENGLISH * 5)) == spacing  # the order of texts is nothing
    assert Spacing.from_dict({}) == Spacing()


@pytest.mark.parametrize("value", [None, "left", ["up", 1.0], ["left"], ["left", "1"], [1, 1.0]])
def test_a_table_that_is_none_is_refused(value):
    with pytest.raises(DamagedFileError, match="expected left, right, both or none"):
        Spacing.from_dict({".": value})


def test_a_table_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("bertkit.decoders.detokenization.MAX_RULES", 1)
    with pytest.raises(DamagedFileError, match="2 rules; the limit is 1"):
        Spacing.from_dict({".": ["left", 1.0], ",": ["left", 1.0]})


def test_a_context_is_kept_only_where_it_says_something_else():
    spacing = Spacing.fit(["one, two, three 1,000"] * 5)
    assert list(spacing.rules) == [",", ", 0 <0> <000>"]
    assert spacing.rules[","] == ("left", close(2 / 3, within=1e-4))
    assert Spacing.fit(["one, two"] * 2).rules == {}  # too seldom to be believed


def test_it_reads_no_more_than_it_needs(monkeypatch):
    monkeypatch.setattr(detokenization, "MAX_CHARS", 100)
    texts = iter(["one, two"] * 1000)
    assert Spacing.fit(texts).rules.keys() == {","}
    assert len(list(texts)) > 900


def test_marks_and_ideographs_are_those_of_the_tokenizer():
    settings = VocabularySettings(vocab_size=6, **CASED.model_dump())
    tokenizer = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"], settings)
    others = set()
    for character in map(chr, range(0x21, 0x20000)):
        if unicodedata.category(character)[0] in "CZ":
            continue
        is_alone = len(tokenizer.find_words(f"a{character}a")) == 3
        if (is_mark(character) or is_ideograph(character)) != is_alone:
            others.add(character)
    # The engine's table of punctuation is of another Unicode: marks of a few rare scripts. Of
    # Chinese characters it leaves out the newest, as google's list does.
    assert all(character > "\u0600" for character in others)
    assert len([character for character in others if not is_ideograph(character)]) < 150


@given(st.lists(st.text(max_size=8), max_size=12))
def test_nothing_but_blanks_is_added_or_lost(words):
    pieces = [piece for word in words for piece in split(word)]
    joined = Spacing.fit(words).join(pieces)
    before, behind = "".join(pieces), joined.replace(" ", "")
    assert unicodedata.normalize("NFC", behind) == unicodedata.normalize("NFC", before)
    assert "  " not in joined


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("language", "least"),
    [
        ("de", 0.995),
        pytest.param("en", 0.995, marks=pytest.mark.exhaustive),
        pytest.param("fr", 0.998, marks=pytest.mark.exhaustive),
    ],
)
def test_captions_come_back(shared_data, language, least):
    folder = shared_data / "parallel" / "multi30k"
    train_pairs, dev_pairs = (
        read_pairs(folder / f"{split}.en.gz", folder / f"{split}.{language}.gz")[0]
        for split in ("train", "val")
    )
    spacing = Spacing.fit(pair.target for pair in train_pairs)
    texts = [" ".join(pair.target.split()) for pair in dev_pairs]
    assert len(spacing.rules) < 100
    assert share_of_exact(texts, spacing, train(texts, 1000)) >= least
