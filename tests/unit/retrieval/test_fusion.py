"""Rankings are joined by reciprocal rank."""

from tests.closeness import assert_close

from bertkit.retrieval.fusion import RANK_CONSTANT, fuse


def test_a_row_that_is_first_in_all_rankings_scores_one():
    ((row, score), *_) = fuse([[7, 1, 2], [7, 3]])
    assert row == 7
    assert_close(score, 1.0)


def test_the_sum_of_reciprocal_ranks_decides():
    fused = fuse([[1, 2, 3], [3, 2]], constant=1)
    assert [row for row, _ in fused] == [3, 2, 1]
    assert_close([score for _, score in fused], [2 * (1 / 4 + 1 / 2) / 2, 2 * (2 / 3) / 2, 1 / 2])


def test_ties_are_ordered_by_the_first_ranking():
    assert [row for row, _ in fuse([[5, 2], [2, 5], []])] == [5, 2]
    assert [row for row, _ in fuse([[9], [3]])] == [9, 3]


def test_no_ranking_finds_nothing():
    assert fuse([]) == fuse([[], []]) == []
    assert RANK_CONSTANT > 0
