"""Losses of vectors and their gradients against those of sentence-transformers, in float64."""

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from tests.closeness import assert_close

from bertkit.tasks.embed.losses import VectorLoss, cosent_loss, in_batch_loss, matryoshka

NUM_ROWS, DIMENSION = 7, 12


class Vectors(torch.nn.Module):
    """A model whose texts are their vectors."""

    def forward(self, features):
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self):
        return DIMENSION


def draw(num_columns):
    """Vectors of rows `[rows, columns, dimension]`, whose gradient is wanted."""
    torch.manual_seed(num_columns)
    return torch.randn(NUM_ROWS, num_columns, DIMENSION, dtype=torch.float64).requires_grad_()


def compute_theirs(loss, rows, labels=None):
    """The mean loss of sentence-transformers, and its gradient by row and column."""
    columns = [{"vectors": column} for column in rows.unbind(dim=1)]
    value = loss(columns, labels)
    return value, torch.autograd.grad(value, rows)[0]


def compute_ours(loss, rows):
    """The mean loss of this project, and its gradient."""
    value = loss(rows.flatten(0, 1)).total / len(rows)
    return value, torch.autograd.grad(value, rows)[0]


def contrast(num_columns, *, is_symmetric=False):
    def loss(vectors: torch.Tensor) -> VectorLoss:
        counts, ids = (num_columns,) * NUM_ROWS, torch.arange(len(vectors))
        return in_batch_loss(vectors, counts, ids, 0.05, is_symmetric=is_symmetric)

    return loss


@pytest.mark.parametrize("num_columns", [2, 3, 5])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_in_batch_negatives(num_columns, is_symmetric):
    both = {
        "directions": ("query_to_doc", "doc_to_query"),
        "partition_mode": "per_direction",
    }
    theirs = losses.MultipleNegativesRankingLoss(Vectors(), **(both if is_symmetric else {}))
    rows = draw(num_columns)
    ours = compute_ours(contrast(num_columns, is_symmetric=is_symmetric), rows)
    assert_close(ours, compute_theirs(theirs, rows))


@pytest.mark.parametrize("lengths", [(4,), (3, 8)])
def test_matryoshka_is_their_sum_divided_by_the_number_of_lengths(lengths):
    inner = losses.MultipleNegativesRankingLoss(Vectors())
    theirs = losses.MatryoshkaLoss(inner.model, inner, [DIMENSION, *lengths])
    rows = draw(3)
    value, gradient = compute_theirs(theirs, rows)
    num_lengths = len(lengths) + 1
    assert_close(
        compute_ours(matryoshka(contrast(3), lengths), rows),
        (value / num_lengths, gradient / num_lengths),
    )


def test_scored_pairs():
    scores = torch.tensor([0.0, 3.0, 1.0, 3.0, 5.0, 2.5, 0.0], dtype=torch.float64)
    rows = draw(2)
    ours = compute_ours(lambda vectors: cosent_loss(vectors, scores, 20.0), rows)
    assert_close(ours, compute_theirs(losses.CoSENTLoss(Vectors()), rows, scores))


def test_a_triplet_alone_is_their_triplet_loss_without_a_margin_where_the_temperature_is_low():
    distance = losses.TripletDistanceMetric.COSINE
    theirs = losses.TripletLoss(Vectors(), distance_metric=distance, triplet_margin=0.0)
    rows, temperature = draw(3), 1e-5
    for row in rows.split(1):
        ours = in_batch_loss(row.flatten(0, 1), (3,), torch.arange(3), temperature).total
        assert_close(ours * temperature, compute_theirs(theirs, row)[0])
