"""Entities in rows of tags; parity tests hold them against seqeval."""

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.entities import LETTERS, count_entities, find_entities, repair_tags


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-PER L-PER U-PER I-PER", [("PER", 0, 2), ("PER", 2, 3), ("PER", 3, 4)]),
        ("B-PER L-PER I-PER", [("PER", 0, 2), ("PER", 2, 3)]),
        ("B-PER M-PER E-PER M-PER", [("PER", 0, 3), ("PER", 3, 4)]),
    ],
)
def test_other_letters_of_entities_are_read_too(tags, expected):
    assert find_entities(tags.split()) == expected


@pytest.mark.parametrize("tag", ["NN", "", "b-PER", "PER", "-PER", "X-PER"])
def test_other_tags_are_refused(tag):
    with pytest.raises(InputError, match=f"tag '{tag}' of word 1 isn't one of entities"):
        find_entities(["O", tag])


@pytest.mark.parametrize(
    ("tags", "scheme", "expected"),
    [
        ("O I-PER I-PER", "BIO", "O B-PER I-PER"),
        ("B-PER I-LOC E-LOC", "BIO", "B-PER B-LOC I-LOC"),
        ("B-PER I-PER O I-LOC", "BIOES", "B-PER E-PER O S-LOC"),
        ("B-PER I-PER I-PER S-PER", "BILOU", "B-PER I-PER L-PER U-PER"),
        ("I O", "BIOES", "S O"),
        ("", "BIO", ""),
    ],
)
def test_repaired_tags_are_of_the_scheme(tags, scheme, expected):
    assert repair_tags(tags.split(), scheme) == expected.split()


@pytest.mark.parametrize("scheme", LETTERS)
def test_a_repair_moves_no_entity_and_is_done_once(scheme):
    generator = np.random.default_rng(0)
    known = ["O", *(f"{letter}-{type_}" for letter in "BIESLUM" for type_ in ("X", "Y"))]
    for _ in range(200):
        tags = generator.choice(known, 7).tolist()
        repaired = repair_tags(tags, scheme)
        assert find_entities(repaired) == find_entities(tags)
        assert repair_tags(repaired, scheme) == repaired


def test_wrong_sentences_are_refused():
    with pytest.raises(InputError, match="tags 1, predictions 2"):
        count_entities([["O"]], [["O"], ["O"]])
    with pytest.raises(InputError, match="sentence 1 has 2 tags, but 1 were predicted"):
        count_entities([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(InputError, match="are empty"):
        count_entities([], [])
