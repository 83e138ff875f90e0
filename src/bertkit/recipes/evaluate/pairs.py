"""Evaluate an encoder on labeled pairs: their similarity, or the rank of each query's passage."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from bertkit.base.errors import pluralize
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings, validate
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.data.tables.records import RecordTable
from bertkit.inference.embeddings.embedder import (
    PASSAGE_PROMPTS,
    QUERY_PROMPTS,
    Embedder,
    with_prompt,
)
from bertkit.inference.embeddings.exact_search import ExactSearch
from bertkit.inference.embeddings.similarity import compare
from bertkit.inference.predictor import PredictionCounts
from bertkit.inference.stream import TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.recipes.evaluate.result import EvaluateResult
from bertkit.recipes.evaluate.run import warn_of_training_rows
from bertkit.recipes.finetune.data import TaskSet
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.examples import EmbedExample
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.ranking import RankedQuery, Similarity
from bertkit.tasks.saved import BY_ARCHITECTURE, find_saved
from bertkit.tasks.settings import with_columns

QUERIES_AT_ONCE = 64  # of which all scores are held


def is_encoder(opened: OpenModel) -> bool:
    """Whether a model gives texts vectors, and nothing else."""
    saved = find_saved(opened.folder)
    if saved is not None:
        return saved.task == Embed.name
    return opened.is_sentence_encoder and opened.architecture not in BY_ARCHITECTURE


def evaluate_pairs(
    load: Callable[[], Embedder], table: RecordTable, columns: Settings, name: str | None = None
) -> EvaluateResult:
    """Evaluate an encoder on a table of pairs with scores, or of queries and passages.

    Of scores, the correlations with the model's similarities are measured; of passages, how each
    query ranks all passages of the table. Arguments are those of `evaluate`.
    """
    embedder = load()
    saved = find_saved(embedder.opened.folder)
    kept = {} if saved is None else {**saved.settings, "has_scores": None}
    settings = with_columns(validate(EmbeddingSettings, kept, TASK_FILE), columns)
    labeled = TaskSet.read(Embed, table, settings)
    task = Embed.from_examples(settings, labeled.examples)
    counts, is_scored = TextCounts(), bool(task.settings.has_scores)
    unit = ("pair", "pairs") if is_scored else ("query", "queries")
    predict = compare_pairs if is_scored else rank_passages
    predictions = predict(embedder, labeled.examples, counts)
    names = {field.name for field in fields(PredictionCounts)}
    told = {key: value for key, value in vars(counts).items() if key in names}
    labeled.count(task, PredictionCounts(**told))
    scoring = task.score(labeled.examples, predictions)
    evaluation = scoring.evaluate()
    warnings = (*warn_of_training_rows(embedder.opened, labeled), *evaluation.warnings)
    return EvaluateResult(
        name or task.name,
        labeled.name,
        pluralize(len(scoring.examples), *unit),
        task.name,
        task.metric,
        replace(evaluation, warnings=warnings),
        scoring.examples,
        scoring.predictions,
        labeled.counts.model_dump(),
        labeled.problems + labeled.describe(task),
    )


def compare_pairs(
    embedder: Embedder, examples: Sequence[EmbedExample], counts: TextCounts
) -> list[Any]:
    """Return the similarity of the two texts of each example."""
    texts = [text for one in examples for text in (one.query, one.passages[0])]
    vectors = embedder(texts, progress=True, counts=counts)
    found = compare(embedder.similarity, vectors[::2], vectors[1::2])
    return [Similarity(value) for value in found.tolist()]


def rank_passages(
    embedder: Embedder, examples: Sequence[EmbedExample], counts: TextCounts
) -> list[Any]:
    """Rank all passages for the query of each example."""
    passages = list(dict.fromkeys(text for one in examples for text in one.passages))
    numbers = {text: number for number, text in enumerate(passages)}
    relevant: dict[str, list[int]] = {}
    for one in examples:
        relevant.setdefault(one.query, []).append(numbers[one.passages[0]])
    answer, ask = (with_prompt(embedder, names) for names in (PASSAGE_PROMPTS, QUERY_PROMPTS))
    corpus = answer(passages, progress=True, counts=counts)
    vectors = ask(list(relevant), progress=True, counts=counts)
    search, ranked = ExactSearch(corpus, embedder.similarity), dict[str, RankedQuery]()
    with show_progress("Ranking", len(relevant)) as progress:
        for query, places in relevant.items():
            if len(ranked) % QUERIES_AT_ONCE == 0:
                scores = iter(search.score_all(vectors[len(ranked) :][:QUERIES_AT_ONCE]))
            relevance = np.zeros(len(passages))
            relevance[places] = 1.0
            ranked[query] = RankedQuery.of(query, passages, next(scores), relevance)
            progress.advance(1)
    return [ranked[one.query] for one in examples]
