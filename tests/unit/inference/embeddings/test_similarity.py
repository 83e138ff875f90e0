"""A score depends on its two vectors alone, and what can't be compared is named."""

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare, find_norms


@pytest.fixture
def vectors():
    return np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_score_depends_on_its_two_vectors_alone(similarity, vectors):
    together = compare(similarity, vectors, vectors[3])
    alone = [compare(similarity, vector[None], vectors[3])[0] for vector in vectors]
    assert together.tolist() == alone


def test_a_zero_vector_is_like_nothing(vectors):
    zero = np.zeros(5, np.float32)
    assert compare("cosine", vectors, zero).tolist() == [0.0] * 9
    assert compare("cosine", vectors, np.float32(1e-25) * vectors).tolist() == [0.0] * 9
    assert compare("cosine", zero, zero) == 0.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 2e18])
def test_what_cannot_be_compared_is_named_by_its_row(vectors, wrong):
    vectors[6, 2] = wrong
    with pytest.raises(InputError, match=r"row 1,006 of the vectors isn't .*at most 1e\+18"):
        find_norms(vectors, "the vectors", first_row=1000)
    assert find_norms(vectors[:6], "the vectors").shape == (6,)
