"""Evaluations by retrieval are those of pytrec_eval and of sentence-transformers."""

import random

import numpy as np
import pytest
import pytrec_eval
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
)
from tests.closeness import assert_close

import bertkit
from bertkit.checkpoints.bundled import find_bundled

NUM_PASSAGES, NUM_QUERIES = 150, 30
WORDS = ("wing", "boundary", "layer", "heat", "flow", "cat", "dog", "house", "red", "mach", "shock")
OFFICIAL = {
    "ndcg@10": "ndcg_cut_10",
    "map@100": "map_cut_100",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "precision@10": "P_10",
}
OF_SENTENCE_TRANSFORMERS = {
    "ndcg@10": "cosine_ndcg@10",
    "mrr@10": "cosine_mrr@10",
    "map@100": "cosine_map@100",
    "recall@10": "cosine_recall@10",
    "recall@100": "cosine_recall@100",
    "precision@10": "cosine_precision@10",
}


@pytest.fixture(scope="module")
def judged():
    """Passages, some of which are equal, queries, and their relevant passages."""
    draw = random.Random(0)
    corpus = {f"d{n}": " ".join(draw.choices(WORDS, k=8)) for n in range(NUM_PASSAGES)}
    corpus |= {"e": corpus["d1"], "c": corpus["d1"]}
    queries = {f"q{n}": " ".join(draw.choices(WORDS, k=4)) for n in range(NUM_QUERIES)}
    queries["q0"] = corpus["d1"]
    relevant = {}
    for name, text in queries.items():  # those that share the most words, and one other
        shared = {one: -len({*text.split()} & {*each.split()}) for one, each in corpus.items()}
        relevant[name] = {*sorted(shared, key=shared.__getitem__)[:3], draw.choice(list(corpus))}
    relevant["q0"] = {"d1"}
    return corpus, queries, relevant


@pytest.fixture(scope="module")
def found(judged):
    corpus, queries, relevant = judged
    return bertkit.evaluate(
        find_bundled("vectors"),
        retrieval=(
            [{"id": name, "text": text} for name, text in corpus.items()],
            [{"id": name, "text": text} for name, text in queries.items()],
            [
                {"query-id": query, "corpus-id": name, "score": 1}
                for query, names in relevant.items()
                for name in names
            ],
        ),
        precision="fp32",
    )


def test_pytrec_eval_measures_the_same(judged, found):
    run = {
        query.place: dict(zip(one.passages, one.scores, strict=True))
        for query, one in zip(found.examples, found.predictions, strict=True)
    }
    qrels = {query: dict.fromkeys(names, 1) for query, names in judged[2].items()}
    official = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut", "map_cut", "recall", "P"})
    values = official.evaluate(run).values()
    expected = {
        ours: np.mean([value[theirs] for value in values]) for ours, theirs in OFFICIAL.items()
    }
    assert_close({name: found.metrics[name] for name in expected}, expected, within=1e-9)


def test_sentence_transformers_evaluates_the_same(judged, found):
    corpus, queries, relevant = judged
    model = SentenceTransformer(
        str(find_bundled("vectors")), device="cpu", model_kwargs={"dtype": torch.float32}
    )
    evaluator = InformationRetrievalEvaluator(
        # Ties are ordered otherwise there: leave out the queries that have some.
        {name: text for name, text in queries.items() if name != "q0"},
        corpus,
        relevant,
        precision_recall_at_k=[10, 100],
        map_at_k=[100],
        mrr_at_k=[10],
        ndcg_at_k=[10],
    )
    measured = evaluator(model)
    ours = np.mean([one.metrics for one in found.predictions[1:]], axis=0)
    ours = dict(zip(found.metrics, ours.tolist(), strict=True))
    expected = {name: float(measured[other]) for name, other in OF_SENTENCE_TRANSFORMERS.items()}
    assert_close(ours, expected, within=1e-4)


def test_sentence_transformers_correlates_the_same():
    draw = random.Random(1)
    rows = [
        {
            "sentence1": " ".join(draw.choices(WORDS, k=6)),
            "sentence2": " ".join(draw.choices(WORDS, k=6)),
            "score": draw.random(),
        }
        for _ in range(40)
    ]
    found = bertkit.evaluate(find_bundled("vectors"), rows, precision="fp32").metrics
    model = SentenceTransformer(
        str(find_bundled("vectors")), device="cpu", model_kwargs={"dtype": torch.float32}
    )
    columns = ([row[name] for row in rows] for name in ("sentence1", "sentence2", "score"))
    measured = EmbeddingSimilarityEvaluator(*columns, main_similarity="cosine")(model)
    expected = {name: measured[f"{name}_cosine"] for name in ("pearson", "spearman")}
    assert_close({name: found[name] for name in expected}, expected, within=1e-4)
