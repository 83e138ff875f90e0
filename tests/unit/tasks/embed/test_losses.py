"""What counts as a negative, what is counted, and that the losses are those of their formulas."""

import math

import pytest
import torch
from tests.closeness import assert_close, close
from torch.nn.functional import normalize

from bertkit.base.errors import SettingsError
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.embed.losses import cosent_loss, in_batch_loss, matryoshka, number_texts


def draw(num_sequences, dimension=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_sequences, dimension, generator=generator, dtype=torch.float64)


def by_hand(vectors, examples, negatives, temperature):
    """The loss of queries and positives by their places, with the places of their negatives."""
    unit = normalize(vectors)
    total = 0.0
    for (query, positive), others in zip(examples, negatives, strict=True):
        terms = [float(unit[query] @ unit[place]) / temperature for place in (positive, *others)]
        total += math.log(sum(map(math.exp, terms))) - terms[0]
    return total


def test_every_passage_of_the_batch_is_a_negative_of_the_other_queries():
    vectors, ids = draw(7), torch.arange(7)
    found = in_batch_loss(vectors, (2, 3, 2), ids, 0.2)
    expected = by_hand(vectors, [(0, 1), (2, 3), (5, 6)], [(3, 4, 6), (1, 4, 6), (1, 3, 4)], 0.2)
    assert float(found.total) == close(expected)
    assert int(found.num_masked) == 0


@pytest.mark.parametrize(
    ("ids", "negatives", "num_masked"),
    [
        ((0, 1, 2, 1, 4, 5, 6), [(4, 6), (4, 6), (1, 3, 4)], 2),  # two have the same positive
        ((0, 1, 0, 3, 4, 5, 6), [(4, 6), (4, 6), (1, 3, 4)], 2),  # two have the same query
        ((0, 1, 2, 3, 1, 5, 6), [(3, 6), (1, 4, 6), (1, 3, 4)], 1),  # a negative is a positive
        ((0, 1, 2, 0, 4, 5, 6), [(4, 6), (1, 4, 6), (1, 3, 4)], 1),  # a passage is a query
        ((0, 1, 2, 3, 3, 5, 6), [(3, 4, 6), (1, 6), (1, 3, 4)], 1),  # its own negative, too
    ],
)
def test_equal_texts_are_no_negatives(ids, negatives, num_masked):
    vectors = draw(7)
    found = in_batch_loss(vectors, (2, 3, 2), torch.tensor(ids), 0.2)
    assert float(found.total) == close(by_hand(vectors, [(0, 1), (2, 3), (5, 6)], negatives, 0.2))
    assert int(found.num_masked) == num_masked


def at_angles(*degrees):
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_what_is_closer_than_the_positive_by_the_margin_is_no_negative_unless_given():
    vectors = at_angles(0, 60, 1, 90, 5, 30)  # two queries, each with a positive and a negative
    ids = torch.arange(6)
    kept = in_batch_loss(vectors, (3, 3), ids, 0.2)
    masked = in_batch_loss(vectors, (3, 3), ids, 0.2, margin=0.3)
    assert (int(kept.num_masked), int(masked.num_masked)) == (0, 3)
    assert float(masked.total) == close(by_hand(vectors, [(0, 1), (3, 4)], [(2,), (2, 5)], 0.2))


def test_a_margin_passes_no_gradient_through_what_it_compares():
    vectors = at_angles(0, 60, 0, 5).requires_grad_()
    in_batch_loss(vectors, (2, 2), torch.arange(4), 0.2, margin=0.1).total.backward()
    assert vectors.grad.isfinite().all()


def test_hits_are_the_queries_whose_positive_is_the_closest():
    ids = torch.arange(4)
    for degrees, num_hits in (((0, 10, 90, 80), 2), ((0, 30, 12, 90), 1), ((0, 90, 88, 1), 0)):
        assert int(in_batch_loss(at_angles(*degrees), (2, 2), ids, 0.1).hits) == num_hits


def test_scored_pairs_are_ordered_and_equal_scores_are_not_compared():
    vectors = draw(8)
    unit = normalize(vectors)
    cosines = [float(unit[place] @ unit[place + 1]) for place in range(0, 8, 2)]
    scores = torch.tensor([0.5, 3.0, 0.5, 1.0])
    wrong = [(0, 1), (0, 3), (2, 1), (2, 3), (3, 1)]  # the first of each should be the lower
    expected = math.log(1 + sum(math.exp(20 * (cosines[i] - cosines[j])) for i, j in wrong))
    assert float(cosent_loss(vectors, scores, 20.0).total) == close(4 * expected)
    assert float(cosent_loss(vectors, torch.ones(4), 20.0).total) == 0


def test_matryoshka_is_the_mean_over_the_lengths_and_the_whole():
    vectors, ids = draw(6), torch.arange(6)

    def loss(rows):
        return in_batch_loss(rows, (2, 2, 2), ids, 0.2)

    found = matryoshka(loss, (2, 4))(vectors)
    parts = [loss(vectors[:, :length]).total for length in (2, 4, 6)]
    assert_close(found.total, torch.stack(parts).mean())
    assert int(found.hits) == int(loss(vectors).hits)


@pytest.mark.parametrize("length", [0, 6, 7])
def test_a_length_that_vectors_do_not_have_is_refused(length):
    compute = matryoshka(lambda rows: cosent_loss(rows, torch.ones(2), 20.0), (2, length))
    with pytest.raises(SettingsError, match="must be from 1 to 5, because vectors"):
        compute(draw(4))


def test_autocast_does_not_lower_the_precision_of_cosines():
    vectors, ids = draw(32).float(), torch.arange(32)
    expected = in_batch_loss(vectors.double(), (2,) * 16, ids, 0.05).total
    with torch.autocast("cpu", torch.bfloat16):
        found = in_batch_loss(vectors, (2,) * 16, ids, 0.05).total
        ranked = cosent_loss(vectors, torch.arange(16), 20.0).total
    assert found.dtype == ranked.dtype == torch.float32
    assert_close(found.double(), expected, "float32")


def test_texts_have_the_same_number_exactly_if_their_tokens_are_the_same():
    texts = [[5, 6], [6, 5], [5, 6], [5], [5, 6, 7], [5, 5], [7, 4], [0], [0, 0], [6, 5]]
    numbers = number_texts(PackedBatch.from_single(texts)).tolist()
    assert [numbers.index(each) for each in numbers] == [0, 1, 0, 3, 4, 5, 6, 7, 8, 1]


def test_the_number_of_a_text_does_not_depend_on_its_batch():
    alone = number_texts(PackedBatch.from_single([[7, 8, 9]]))
    beside = number_texts(PackedBatch.from_single([[1, 2], [7, 8, 9]]))
    assert int(alone) == int(beside[1])
    many = [[first, second] for first in range(150) for second in range(150)]
    assert len(number_texts(PackedBatch.from_single(many)).unique()) == len(many)
