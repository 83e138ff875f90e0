"""Scores of words become tags that fit each other, and entities."""

from collections import Counter

import numpy as np
import pytest
from tests.closeness import close

from bertkit.tasks.tag.decoding import (
    Sentence,
    Tagging,
    choose_labels,
    decode,
    find_scheme,
    list_strays,
    spell,
    spell_labels,
)

ENTITIES = Counter({"O": 60, "B-DRUG": 9, "I-DRUG": 4})


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("O B-PER I-PER", "BIO"),
        ("O I-PER", "BIO"),
        ("O B I", "BIO"),
        ("B-NP I-NP B-VP", "BIO"),
        ("O B-PER I-PER E-PER S-PER", "BIOES"),
        ("O I-PER E-PER", "BIOES"),
        ("O B-PER I-PER L-PER U-PER", "BILOU"),
        ("O B-PER M-PER E-PER S-PER", "BMES"),
        ("NOUN VERB O", None),
        ("B I E S", None),
        ("O B-PER X", None),
        ("LABEL_0 LABEL_1", None),
        ("O PER LOC", None),
    ],
)
def test_the_scheme_follows_from_the_labels(labels, scheme):
    assert find_scheme(labels.split()) == scheme


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("O", "O"),
        ("o", "O"),
        ("B-per", "B-per"),
        ("b-Per", "B-Per"),
        ("B_PER", "B-PER"),
        ("PER-B", "B-PER"),
        ("GEO_LOC-i", "I-GEO_LOC"),
        ("S-B", "S-B"),
        ("0", None),
        ("PER", None),
        ("B PER", None),
        ("NOUN", None),
        ("", None),
    ],
)
def test_other_spellings_of_a_tag_are_read(tag, expected):
    assert spell(tag) == expected


@pytest.mark.parametrize(
    ("others", "is_slip"),
    [
        ({"0": 1}, True),
        ({"0": 1, "DRUG": 1}, False),  # 2 words in 13 of entities
        ({"0": 60}, False),
    ],
)
def test_a_few_stray_tags_are_no_labels(others, is_slip):
    counts = ENTITIES + Counter(others)
    assert choose_labels(counts) == (set(ENTITIES) if is_slip else set(counts))
    assert list_strays(counts) == sorted(others)
    many = Counter({tag: 10 * count for tag, count in ENTITIES.items()}) + Counter({"0": 13})
    assert choose_labels(many) == set(ENTITIES)


@pytest.mark.parametrize(
    "tags",
    ["NOUN VERB O", "NN-S VB-S", "O NN-S", "1 2 10", "s o", "O B-PER X", "DET-M NOUN-M NOUN-S"],
)
def test_plain_tags_stay_as_they_are(tags):
    counts = Counter(tags.split())
    assert choose_labels(counts) == set(counts)
    assert spell_labels(list(counts)) == tuple(counts)


def test_plain_tags_have_no_strays():
    assert list_strays({"NOUN", "VERB", "O", "B-X"}) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("PER-B O PER-I", "B-PER O I-PER"),
        ("o b_per i_per", "O B-per I-per"),
        ("O B-PER PER-B", "O B-PER PER-B"),  # two labels of one name
        ("O B_PER X", "O B_PER X"),
    ],
)
def test_labels_of_a_model_are_spelled_as_usual(labels, expected):
    assert spell_labels(labels.split()) == tuple(expected.split())


LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def test_an_entity_is_as_likely_as_its_words_on_average():
    labels = ("O", "B-X", "I-X")
    logits = np.log(np.array([[0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], dtype=np.float32))
    (entity,) = decode(Sentence(("a", "b")), logits, labels, "BIO").entities
    assert entity.probability == close(0.7, "float32")


@pytest.mark.parametrize("sentence", [Sentence(()), Sentence((), [], " ")])
def test_no_words_have_no_tags(sentence):
    assert decode(sentence, np.zeros((0, 5), dtype=np.float32), LABELS, "BIO") == Tagging(())


def test_large_scores_do_not_overflow():
    logits = np.array([[1e30, -1e30]], dtype=np.float32)
    assert decode(Sentence(("a",)), logits, ("x", "y"), None).words[0][:3] == ("a", "x", 1.0)
