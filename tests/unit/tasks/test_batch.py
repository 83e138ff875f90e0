"""A table gives the examples back that were put into it, and takes little memory."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest

from bertkit.tasks import batch as batches
from bertkit.tasks.batch import Encoded, EncodedTable, TokenSequence, cut_by_scores


def make_example(number: int, labels: np.ndarray, alignment: object = None) -> Encoded:
    sequences = tuple(
        TokenSequence([101, *range(number, number + length), 30521], [0] * 2 + [1] * length)
        for length in range(1 + number % 3)
    )
    return Encoded(sequences, labels, is_cut=number % 2 == 1, alignment=alignment)


@pytest.mark.parametrize(
    "labels",
    [
        lambda number: np.array([number]),
        lambda number: np.full((1, 4), number / 2, dtype=np.float32),
        lambda number: np.arange(2 * number).reshape(number, 2),
        lambda number: np.full(number, -100),
    ],
)
def test_examples_are_given_back_as_they_were(labels):
    examples = [make_example(number, labels(number), ("at", number)) for number in range(7)]
    table = EncodedTable()
    table.extend(examples[:3])
    table.extend(examples[3:])
    assert len(table) == 7
    for found, wanted in zip(table, examples, strict=True):
        assert found.sequences == wanted.sequences
        assert (found.is_cut, found.alignment) == (wanted.is_cut, wanted.alignment)
        assert found.labels.dtype == wanted.labels.dtype
        np.testing.assert_array_equal(found.labels, wanted.labels, strict=True)
    assert table[-1].sequences == examples[6].sequences
    assert [one.alignment for one in table[1:3]] == [("at", 1), ("at", 2)]
    with pytest.raises(IndexError):
        table[7]


def test_every_field_of_an_example_is_kept():
    examples = [
        Encoded((TokenSequence([101, 30521], [0, 0]),), labels, True, ("at", 1), num_flags=3)
        for labels in (np.array([0, 2], dtype=np.int32), np.array([], dtype=np.int32))
    ]
    table = EncodedTable()
    table.extend(examples)
    for found, wanted in zip(table, examples, strict=True):
        for field in fields(Encoded):
            one, other = getattr(found, field.name), getattr(wanted, field.name)
            assert np.array_equal(one, other) if field.name == "labels" else one == other
        np.testing.assert_array_equal(found.label_rows, wanted.label_rows, strict=True)


def test_tokens_of_texts_are_counted_with_odd_examples():
    examples = [make_example(number, np.array([number])) for number in range(7)]
    table = EncodedTable()
    table.extend(examples)
    assert table.count_tokens((101, 30521), 4) == {
        "text_tokens": sum(one.num_tokens - 2 * len(one.sequences) for one in examples),
        "unknown_tokens": sum(one.count(4) for one in examples),
        "empty": 3,  # whose only sequence has no token of a text
        "truncated": 3,
        "windowed": 4,
    }
    assert set(EncodedTable().count_tokens((101,), 4).values()) == {0}


def test_an_example_takes_few_bytes():
    number, num_tokens = 2000, 20
    tracemalloc.start()
    table = EncodedTable()
    table.extend(
        Encoded((TokenSequence([7000 + place] * num_tokens, [0] * num_tokens),), np.array([1]))
        for place in range(number)
    )
    num_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table) == number
    assert num_bytes < 200 * number  # as objects of Python 900


def encode(*lengths: int) -> list[Encoded]:
    return [Encoded((TokenSequence([1] * length, [0] * length),)) for length in lengths]


@pytest.mark.parametrize(
    ("num_labels", "scored", "parts"),
    [
        (0, "token", [range(4)]),
        (3, "sequence", [range(4)]),
        (6, "sequence", [range(2), range(2, 4)]),
        (50_000, "sequence", [range(1), range(1, 2), range(2, 3), range(3, 4)]),
        (2, "token", [range(2), range(2, 3), range(3, 4)]),
    ],
)
def test_very_many_labels_are_scored_in_parts(num_labels, scored, parts, monkeypatch):
    monkeypatch.setattr(batches, "MAX_SCORES", 12)
    assert cut_by_scores(encode(2, 3, 9, 1), num_labels, scored=scored) == parts


def test_no_example_is_one_part():
    assert cut_by_scores([], 3, scored="sequence") == [range(0)]
