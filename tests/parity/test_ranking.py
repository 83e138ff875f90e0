"""Metrics of rankings are those of trec_eval, by pytrec_eval."""

import numpy as np
import pytest
import pytrec_eval
from tests.closeness import assert_close

from bertkit.tasks.metrics.ranking import measure_ranking, order_by_score

NUM_QUERIES = 300
NUM_PASSAGES = 40
OFFICIAL = {  # of one cut, and names of trec_eval
    "ndcg": "ndcg_cut",
    "map": "map_cut",
    "recall": "recall",
    "precision": "P",
}


def draw_query(generator: np.random.Generator) -> tuple[dict[str, int], dict[str, float]]:
    """Relevance and scores of a query; many scores are equal, and some relevances negative."""
    names = [f"d{number}" for number in generator.permutation(NUM_PASSAGES)]
    num_judged, num_ranked = generator.integers(1, NUM_PASSAGES, 2)
    relevance = generator.integers(-1, 4, num_judged).tolist()
    scores = (generator.integers(0, 12, num_ranked) / 8).tolist()
    return (
        dict(zip(names[:num_judged], relevance, strict=True)),
        dict(zip(generator.permutation(names)[:num_ranked].tolist(), scores, strict=True)),
    )


@pytest.mark.parametrize("top_k", [1, 3, 10, 100])
def test_each_metric_of_each_query(top_k):
    generator = np.random.default_rng(top_k)
    queries = {f"q{number}": draw_query(generator) for number in range(NUM_QUERIES)}
    qrels = {name: relevance for name, (relevance, _) in queries.items()}
    run = {name: scores for name, (_, scores) in queries.items()}
    measures = {f"{name}.{top_k}" for name in OFFICIAL.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    # trec_eval has no cut for this one: ask it for the first ranks alone.
    first = {name: cut(scores, top_k) for name, scores in run.items()}
    ranks = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(first)
    for query, (relevance, scores) in queries.items():
        order = order_by_score(list(scores.values()), list(scores))
        ranked = [relevance.get(list(scores)[place], 0) for place in order]
        names = [f"{name}@{top_k}" for name in (*OFFICIAL, "mrr")]
        found = measure_ranking(ranked, list(relevance.values()), names)
        official = [expected[query][f"{name}_{top_k}"] for name in OFFICIAL.values()]
        official.append(ranks[query]["recip_rank"])
        assert_close(list(found.values()), official, within=1e-9)


def cut(scores: dict[str, float], top_k: int) -> dict[str, float]:
    order = order_by_score(list(scores.values()), list(scores))[:top_k]
    return {list(scores)[place]: list(scores.values())[place] for place in order}
