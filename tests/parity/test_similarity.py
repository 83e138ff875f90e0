"""The four measures are those of sentence-transformers."""

import numpy as np
import pytest
from sentence_transformers import util
from tests.closeness import assert_close

from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare_all

THEIRS = {
    "cosine": util.cos_sim,
    "dot": util.dot_score,
    "euclidean": util.euclidean_sim,
    "manhattan": util.manhattan_sim,
}


def test_every_measure_has_its_peer():
    assert set(SIMILARITIES) == set(THEIRS)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_are_those_of_sentence_transformers(similarity):
    vectors = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    scores = compare_all(similarity, vectors[:4], vectors[4:])
    assert scores.shape == (4, 5)
    theirs = THEIRS[similarity](vectors[:4], vectors[4:]).numpy()
    assert_close(scores, theirs)
