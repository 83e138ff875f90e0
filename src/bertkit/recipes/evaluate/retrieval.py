"""Evaluate an encoder by what it finds: each query's most similar passages of a corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bertkit.base.errors import InputError, pluralize
from bertkit.data.problems import check_unknown, describe_unknown, name_problem
from bertkit.inference.embeddings.embedder import (
    PASSAGE_PROMPTS,
    QUERY_PROMPTS,
    Embedder,
    with_prompt,
)
from bertkit.inference.embeddings.exact_search import ExactSearch
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import TextCounts
from bertkit.recipes.evaluate.judged_set import JudgedSet
from bertkit.recipes.evaluate.result import EvaluateResult
from bertkit.tasks.evaluation import Numbers, Statistic, TaskScoring
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.metrics.ranking import measure_ranking
from bertkit.tasks.saved import find_saved

METRICS = ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "precision@10")
NUM_FOUND = 100  # passages of each query that are looked at
SHOWN_FOUND = 10


@dataclass(frozen=True)
class JudgedQuery:
    """A query as a report shows it."""

    place: str  # its id
    shown: str


@dataclass(frozen=True)
class FoundPassages:
    """What was found for a query.

    Attributes:
        passages: ids, best first.
        scores: their similarities.
        metrics: the values of `METRICS`.
    """

    passages: tuple[str, ...]
    scores: tuple[float, ...]
    metrics: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """Return the first passages and the metrics."""
        found = zip(self.passages[:SHOWN_FOUND], self.scores, strict=False)
        metrics = dict(zip(METRICS, self.metrics, strict=True))
        return {"found": [{"id": name, "score": score} for name, score in found], **metrics}


@dataclass(frozen=True)
class RetrievalScoring(TaskScoring[JudgedQuery, FoundPassages]):
    """Metrics of retrieval, each the mean over queries, and the queries with the lowest nDCG."""

    judged: JudgedSet

    @property
    def values(self) -> Numbers:
        """The metrics of each query, `[metrics, queries]`."""
        return np.array([found.metrics for found in self.predictions], dtype=np.float64).T

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The means as functions of weights."""
        each = zip(METRICS, self.values, strict=True)
        return {name: partial(weighted_mean, values) for name, values in each}

    @property
    def metrics(self) -> dict[str, float]:
        """The means over queries."""
        return dict(zip(METRICS, self.values.mean(axis=1).tolist(), strict=True))

    @property
    def errors(self) -> Numbers:
        """What each query lacks of the best nDCG."""
        errors: Numbers = 1.0 - self.values[0]
        return errors

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the most relevant passage, and the one that was found first."""
        relevance = self.judged.relevance[self.examples[number].place]
        best = max(relevance, key=lambda name: (relevance[name], name in self.judged.corpus))
        return self._show(best), self._show(self.predictions[number].passages[0])

    def _show(self, name: str) -> str:
        return f"{name}: {self.judged.corpus.get(name, 'not in the corpus')}"


def load_encoder(model: object, loading: EngineSettings) -> Embedder:
    """Load an encoder, or take a loaded one; `InputError` for a model of another task."""
    saved = find_saved(model) if isinstance(model, str | Path) else None
    if not isinstance(model, str | Path | Embedder) or (saved and saved.task != "embed"):
        shown = f"{model} was fine-tuned to {saved.task}" if saved else f"{model!r:.40} is another"
        raise InputError(
            f"--retrieval takes an encoder, which gives texts vectors, and {shown}; make one with"
            " `bertkit finetune embed`"
        )
    chosen = EmbedderSettings(**loading.model_dump(exclude_unset=True))
    return Embedder.take(model, chosen)


def evaluate_retrieval(
    load: Callable[[], Embedder], judged: JudgedSet, name: str
) -> EvaluateResult:
    """Search the corpus for each query, and compare what is found with the judgments.

    The model's prompts for queries and passages are used as in a search. A text that is longer than
    the model reads is truncated, and counted.
    """
    embedder = load()
    # Equal scores are ordered by descending id, as by trec_eval: the search keeps this order.
    names = sorted(judged.corpus, reverse=True)
    problems = [*judged.problems]
    texts = {
        "passages": (PASSAGE_PROMPTS, [judged.corpus[name] for name in names]),
        "queries": (QUERY_PROMPTS, list(judged.queries.values())),
    }
    vectors = {
        what: embed(with_prompt(embedder, prompts), chosen, what, problems)
        for what, (prompts, chosen) in texts.items()
    }
    search = ExactSearch(vectors["passages"], embedder.similarity)
    scores, rows = search.search(vectors["queries"], NUM_FOUND)
    found = [
        score(judged.relevance[query], [names[row] for row in places], values)
        for query, places, values in zip(
            judged.queries, rows.tolist(), scores.tolist(), strict=True
        )
    ]
    queries = [JudgedQuery(name, text) for name, text in judged.queries.items()]
    evaluation = RetrievalScoring(queries, found, judged).evaluate()
    num_queries, num_passages = len(queries), len(judged.corpus)
    counted = pluralize(num_queries, "query", "queries")
    return EvaluateResult(
        name,
        judged.name,
        f"{counted} on {pluralize(num_passages, 'passage')}",
        "embed",
        METRICS[0],
        evaluation,
        queries,
        found,
        judged.identities | {"num_queries": num_queries, "num_passages": num_passages},
        problems,
    )


def embed(embedder: Embedder, texts: Sequence[str], what: str, problems: list[str]) -> Vectors:
    """Compute the vectors of texts; problems with them are appended."""
    counts = TextCounts()
    vectors = embedder(texts, progress=True, counts=counts)
    check_unknown(what, counts.unknown_tokens, counts.text_tokens)
    lines = describe_unknown(counts.unknown_tokens, counts.text_tokens)
    problems += [name_problem(what, line) for line in lines]
    longest = embedder.text_encoder.max_length
    told = [
        (counts.empty, "without text, kept"),
        (counts.truncated, f"longer than {longest:,} tokens, truncated"),
    ]
    total = pluralize(len(texts), "text")
    problems += [f"{what}: {number:,} of {total} {how}" for number, how in told if number]
    return vectors


def score(
    relevance: dict[str, float], names: Sequence[str], scores: Sequence[float]
) -> FoundPassages:
    """Measure what was found for a query."""
    ranked = [relevance.get(name, 0.0) for name in names]
    values = measure_ranking(ranked, list(relevance.values()), METRICS)
    return FoundPassages(tuple(names), tuple(scores), tuple(map(float, values.values())))
