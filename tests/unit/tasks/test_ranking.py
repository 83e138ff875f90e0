"""Rankings and similarities: their metrics, and the values that are compared row by row."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from tests.closeness import assert_close, close

from bertkit.tasks.metrics.correlation import spearman
from bertkit.tasks.metrics.ranking import measure_ranking, order_by_score
from bertkit.tasks.ranking import (
    NDCG,
    RANKING_METRICS,
    RankedQuery,
    RankingScoring,
    RowValues,
    Similarity,
    SimilarityScoring,
    link_groups,
    score_rankings,
)


@dataclass(frozen=True)
class Row:
    """An example as scorings read it."""

    shown: str
    number: float | None = None
    place: str = "rows.csv:2"


def rank(query: str, *relevance: float, start: bool = False) -> RankedQuery:
    """Passages "p0", "p1", … that are ranked in this order; the retriever had the reverse one."""
    passages = [f"p{number}" for number in range(len(relevance))]
    scores = -np.arange(len(passages), dtype=np.float32)
    return RankedQuery.of(query, passages, scores, relevance, -scores if start else None)


def test_a_ranking_says_where_the_relevant_passage_is():
    found = rank("q", 0, 0, 1, 1)
    assert (found.rank, found.expected, found.passage) == (3, "p2", "p0")
    assert (found.num_passages, found.start_ndcg) == (4, None)
    assert found.describe() == "3 of 4: q"
    wanted = measure_ranking([0, 0, 1, 1], [0, 0, 1, 1], RANKING_METRICS)
    assert found.metrics == tuple(map(float, wanted.values()))


def test_a_query_without_a_relevant_passage_has_no_rank():
    found = rank("q", 0, 0)
    assert (found.rank, found.expected, found.metrics) == (0, "", (0.0, 0.0, 0.0))


def test_only_the_top_is_sorted_with_the_result_of_sorting_all():
    generator = np.random.default_rng(3)
    passages = [f"passage {number}" for number in generator.permutation(300)]
    for _ in range(20):
        scores = generator.integers(0, 20, size=300) / 4  # many are equal
        relevance = generator.random(300) < 0.03
        found = RankedQuery.of("q", passages, scores, relevance)
        order = order_by_score(scores, passages)
        wanted = measure_ranking(relevance[order], relevance, RANKING_METRICS)
        assert_close(np.array(found.metrics), np.array(list(wanted.values())))
        assert found.rank == 1 + int(np.argmax(relevance[order]))
        assert found.passage == passages[order[0]]
        assert found.expected == passages[order[found.rank - 1]]


def test_rows_of_one_query_count_once():
    often, once = rank("often", 0, 1), rank("once", 1, 0)
    examples = [Row("a"), Row("b"), Row("c")]
    scoring = score_rankings(examples, [often, often, once])
    assert scoring.examples == [examples[0], examples[2]]
    assert scoring.metrics[NDCG] == close((often.metrics[0] + 1.0) / 2)
    evaluation = scoring.evaluate()
    assert set(evaluation.intervals) == set(RANKING_METRICS)
    (mistake,) = evaluation.mistakes
    assert (mistake.text, mistake.expected, mistake.predicted) == ("a", "rank 2: p1", "p0")


def test_no_queries_have_no_metrics():
    evaluation = score_rankings([], []).evaluate()
    assert np.isnan(list(evaluation.metrics.values())).all()
    assert evaluation.intervals == {}


def test_the_start_is_known_only_if_every_query_knows_it():
    examples = [Row("a"), Row("b")]
    known = [rank("a", 0, 1, start=True), rank("b", 1, 0, start=True)]
    values = RankingScoring(examples, known).row_values
    assert values.start is not None
    assert_close(values.start, values.values[::-1])
    mixed = RankingScoring(examples, [known[0], rank("b", 1, 0)])
    assert mixed.row_values.start is None


def test_similarities_are_scored_by_correlation():
    truth, guess = [0.0, 2.5, 1.0, 5.0], [0.1, 0.6, 0.4, 0.5]
    examples = [Row("pair", number) for number in truth]
    scoring = SimilarityScoring(examples, [Similarity(value) for value in guess])
    assert scoring.metrics["spearman"] == close(stats.spearmanr(truth, guess)[0])
    assert scoring.metrics["pearson"] == close(stats.pearsonr(truth, guess)[0])
    evaluation = scoring.evaluate()
    assert set(evaluation.intervals) == {"spearman", "pearson"}
    assert [(found.expected, found.predicted) for found in evaluation.mistakes] == [
        ("2.5", "0.600"),
        ("5", "0.500"),
    ]
    weights = np.array([[1.0, 1, 1, 1], [0, 2, 1, 1]])
    assert_close(scoring.row_values.measure(weights), spearman(truth, guess, weights))


def test_a_mean_of_no_row_is_not_defined():
    values = RowValues(np.array([1.0, 0.0]))
    found = values.measure(np.array([[0.0, 0.0], [3.0, 1.0]]))
    assert np.isnan(found[0])
    assert found[1] == 0.75


def test_gains_are_differences_or_how_much_closer_a_rank_is():
    start = RowValues(np.array([0.5, 0.5]))
    assert RowValues(np.array([1.0, 0.25])).find_gains(start).tolist() == [0.5, -0.25]
    pairs = RowValues(np.array([0.1, 0.2, 0.9]), truth=np.array([1.0, 2.0, 3.0]))
    found = pairs.find_gains(RowValues(np.array([0.9, 0.2, 0.1])))
    assert found.tolist() == close([2 / 3, 0, 2 / 3])


def test_rows_that_share_a_text_directly_or_by_others_are_one_group():
    groups = link_groups([("a", "x"), ("b", "y"), ("c", "x"), ("b", "x"), ("d", "z")])
    assert len({groups[0], groups[1], groups[2], groups[3]}) == 1
    assert groups[4] != groups[0]
    assert link_groups([]) == []


def test_texts_that_differ_in_case_or_spaces_are_the_same():
    groups = link_groups([("What is it?", "a"), ("what  is\nit?", "b"), ("c", "A ")])
    assert len(set(groups)) == 1


def test_a_passage_that_is_the_query_itself_is_left_out():
    found = RankedQuery.of("a", ["a", "b", "c"], [1.0, 0.5, 0.2], [0, 1, 0], [1.0, 0.1, 0.2])
    assert (found.passage, found.rank, found.num_passages) == ("b", 1, 2)
    assert found.metrics == (1.0, 1.0, 1.0)
    assert found.start_ndcg == close(1 / np.log2(3))
    answer = RankedQuery.of("a", ["a", "b"], [1.0, 0.5], [1, 0])
    assert (answer.passage, answer.num_passages) == ("a", 2)
    assert RankedQuery.of("a", ["a"], [1.0], [0]).num_passages == 1
