"""What to label next: rows that cover what is uncertain, not outliers or repeats."""

import numpy as np
import pytest
from tests.closeness import assert_close

from bertkit.recipes.review.selection import PoolProbabilities, choose_next


def draw_clusters(*sizes: int, width: int = 16, spread: float = 0.05) -> np.ndarray:
    """Vectors of unit length around axes that are orthogonal, a cluster after another."""
    generator = np.random.default_rng(0)
    centers = np.repeat(np.eye(width, dtype=np.float32)[: len(sizes)], sizes, axis=0)
    noise = generator.standard_normal(centers.shape).astype(np.float32)
    vectors = centers + spread * noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def choose_numbers(*given: object) -> list[int]:
    return [each.number for each in choose_next(*given)]


def test_each_large_cluster_gets_a_row_before_an_outlier_does():
    vectors = draw_clusters(40, 1, 30, 20)
    first = choose_next(None, vectors, 3)
    clusters = np.repeat([0, 1, 2, 3], [40, 1, 30, 20])
    assert clusters[[each.number for each in first]].tolist() == [0, 2, 3]
    assert first[0].why == "stands for about 40 rows of the pool"
    assert 40 in choose_numbers(None, vectors, 4)  # what is left


def test_what_labeled_rows_cover_waits():
    vectors = draw_clusters(40, 30)
    (suggestion,) = choose_next(None, vectors, 1, vectors[:5])
    assert suggestion.number >= 40
    assert suggestion.why == "unlike all labeled rows; stands for about 30 rows of the pool"


def test_uncertain_rows_are_covered_first():
    vectors = draw_clusters(40, 30)
    values = np.repeat([[0.98, 0.02], [0.45, 0.55]], [40, 30], axis=0)
    (suggestion,) = choose_next(PoolProbabilities(values, ["refund", "billing"]), vectors, 1)
    assert suggestion.number >= 40
    assert suggestion.why.startswith("unsure: billing 55 %, refund 45 %; stands for about 30 rows")


@pytest.mark.parametrize(
    ("values", "is_multi_label", "uncertainty", "why"),
    [
        ([0.7, 0.1, 0.2], False, 0.5, "unsure: a 70 %, c 20 %"),
        ([0.9, 0.4, 0.1], True, 0.8, "unsure: b 40 %"),
        ([0.3], True, 0.6, "unsure: a 30 %"),
        ([1.0], False, 1.0, "unsure: a 100 %"),
    ],
)
def test_uncertainty_is_that_of_the_closest_decision(values, is_multi_label, uncertainty, why):
    expected = PoolProbabilities(np.array([values]), ["a", "b", "c"], is_multi_label)
    assert_close(expected.find_uncertainty(), np.array([uncertainty]))
    assert expected.describe(0) == why


def test_labels_are_legible():
    expected = PoolProbabilities(np.array([[0.6, 0.4]]), ["\x1b[31mred", "b"])
    assert expected.describe(0) == "unsure: ␛[31mred 60 %, b 40 %"


def test_the_search_chooses_the_best_row_each_time(monkeypatch):
    """As one that measures every row anew, with blocks smaller than the pool."""
    monkeypatch.setattr("bertkit.recipes.review.selection.ROWS_PER_BLOCK", 7)
    vectors = draw_clusters(30, 30, 40, spread=0.4)
    found = choose_numbers(None, vectors, 25, vectors[:3])
    similarity = np.maximum(vectors @ vectors.T, 0).astype(np.float64)
    covered, expected = similarity[:3].max(axis=0), []
    for _ in range(25):
        gains = np.maximum(similarity - covered, 0).mean(axis=1).round(6)
        gains[expected] = -1
        expected.append(int(gains.argmax()))
        covered = np.maximum(covered, similarity[expected[-1]])
    assert found == expected


def test_equal_rows_and_few_rows():
    same = np.repeat(draw_clusters(1), 5, axis=0)
    certain = PoolProbabilities(np.repeat([[1.0, 0.0]], 5, axis=0), ["a", "b"])
    assert choose_numbers(certain, same, 9) == [0, 1, 2, 3, 4]
    assert choose_next(certain, same, 1)[0].why == "stands for about 5 rows of the pool"
    assert choose_next(None, same, 2)[1].why == "few rows of the pool are like it"
    assert choose_next(None, same[:0], 3) == []


def test_only_some_rows_of_a_large_pool_are_measured(monkeypatch):
    monkeypatch.setattr("bertkit.recipes.review.selection.MOST_COVERED", 50)
    vectors = draw_clusters(400, 200)
    first, second = choose_next(None, vectors, 2)
    assert first.number < 400 <= second.number
    assert first.why == "stands for about 396 rows of the pool"  # 33 of 50, scaled
