"""Suggest which rows of a pool without labels to label next, for a model that was fine-tuned."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from pydantic import JsonValue

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.records import RecordTable
from bertkit.data.writers import Row, write_rows
from bertkit.inference.predictor import AnyPredictor, EncodedExamples, PredictionCounts, Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.inference.torch_model import find_network
from bertkit.recipes.review.encoder import SEED, choose_machine, find_vectors
from bertkit.recipes.review.judgment import normalize
from bertkit.recipes.review.label_errors import Numbers
from bertkit.recipes.review.rows import ReviewedRows, read_rows
from bertkit.recipes.review.selection import PoolProbabilities, Suggestion, choose_next
from bertkit.recipes.review.table import Places, name_findings, open_places
from bertkit.recipes.solved_head import Features, FrozenModel, computed_features
from bertkit.reports.notebook import show_rows
from bertkit.reports.text import show
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.labeled_table import check_columns
from bertkit.tasks.settings import with_columns
from bertkit.tasks.task import AnyTask, TaskExample

EXAMPLES_AT_ONCE = 2048
TEXT_CHARS = 60
EXACT = EngineSettings(engine="torch", precision="fp32")  # so that every processor finds the same


@dataclass(frozen=True, repr=False)
class NextRows:
    """Rows to label next, in this order."""

    rows: ReviewedRows
    suggestions: Sequence[Suggestion]

    def describe(self) -> str:
        """Describe each row in a line."""
        number = pluralize(len(self.rows.examples), "row")
        lines = [f"{self.rows.labeled.name}: {number}; to label next:"]
        for each in self.suggestions:
            example = self.rows.examples[each.number]
            text = show(self.rows.show_text(each.number), TEXT_CHARS)
            lines.append(f"  {example.place}: {text!r} ({each.why})")
        return "\n".join(lines)

    __repr__ = describe

    def to_rows(self) -> list[Row]:
        """Return the cells of the suggested rows, and beside them why."""
        values = {record.place: record.values for record in self.rows.records}
        name = name_findings(self.rows, ("why",))
        return [
            {**values[self.rows.examples[each.number].place], f"{name}why": each.why}
            for each in self.suggestions
        ]

    def to_json(self) -> dict[str, JsonValue]:
        """Return the rows as JSON values, with their places."""
        found: list[JsonValue] = [
            {
                "place": self.rows.examples[each.number].place,
                "text": self.rows.show_text(each.number),
                "why": each.why,
            }
            for each in self.suggestions
        ]
        return {"data": self.rows.labeled.name, "num_rows": len(self.rows.examples), "next": found}

    def _repr_html_(self) -> str:
        return show_rows(self.to_rows())


def suggest_next(
    tables: Sequence[RecordTable],
    model: str | Path,
    number: int,
    columns: Settings,
    places: Places,
) -> NextRows:
    """Suggest rows of a table without labels to label next.

    Args:
        tables: the pool, and rows that have labels already.
        model: a fine-tuned model.
        number: how many rows.
        columns: names of columns that differ from those of the training data.
        places: where to write them.

    Raises:
        InputError: the table can't be read.
        BertkitError: the model can't be loaded, or the rows can't be written.
    """
    table = tables[0]
    with open_places(places, tables) as (output, report):
        if report is not None:
            raise InputError("--report is for rows with labels; --output has those to label next")
        predictor: AnyPredictor = Predictor.load(model, EXACT)
        settings = with_columns(predictor.task.settings, columns)
        for each in tables:
            check_columns(settings, each, needs_answer=False)
        labels = predictor.task.labels
        rows, *labeled = (read_rows(one, settings, known=labels, is_pool=True) for one in tables)
        found = NextRows(rows, choose_rows(rows, labeled, predictor, number))
        if output is not None:
            write_rows(output, found.to_rows(), table.csv_style)
    return found


def choose_rows(
    rows: ReviewedRows, labeled: Sequence[ReviewedRows], predictor: AnyPredictor, number: int
) -> list[Suggestion]:
    """Choose rows to label next, unlike those that have labels."""
    task, counts = predictor.task, PredictionCounts()
    encoded, num_rows = list[Encoded](), len(rows.examples)
    examples = list(chain.from_iterable(each.examples for each in (rows, *labeled)))
    with show_progress("encoding rows", len(examples)) as bar:
        for start in range(0, len(examples), EXAMPLES_AT_ONCE):
            chosen = examples[start : start + EXAMPLES_AT_ONCE]
            window: EncodedExamples[TaskExample] = predictor.encode_window(chosen)
            counts.add(predictor.count(window))
            encoded += window.encoded
            bar.advance(len(chosen))
    announce_unknown(counts.unknown_tokens, counts.text_tokens, rows.labeled.name)
    model = find_network(predictor.engine)
    frozen = FrozenModel(model, task, encoded, choose_machine(), SEED)
    with (
        tempfile.TemporaryDirectory(prefix="bertkit-") as folder,
        computed_features(Path(folder) / "rows", frozen) as features,
    ):
        logits, vectors = list(_predict(frozen, features, num_rows)), find_vectors(features)
        expected = expect(task, encoded[:num_rows], logits)
        return choose_next(expected, vectors[:num_rows], number, vectors[num_rows:])


@torch.inference_mode()
def _predict(frozen: FrozenModel, features: Features, num_rows: int) -> Iterator[Logits]:
    """Yield the logits of the first rows."""
    for number in range(num_rows):
        rows = torch.from_numpy(features.rows[features.find_rows([number])])
        yield frozen.model.score(rows.to(frozen.machine.device)).cpu().numpy()


def expect(
    task: AnyTask, encoded: Sequence[Encoded], logits: Sequence[Logits]
) -> PoolProbabilities | None:
    """Return what a model expects of rows; None if its task has no labels."""
    if not task.labels:
        return None
    if task.scored == "token":
        words = zip(encoded, logits, strict=True)
        values = np.array([_find_least_sure(rows[one.alignment[1]]) for one, rows in words])
        return PoolProbabilities(values, task.labels)
    scores = np.array([rows.mean(axis=0) for rows in logits], np.float64) / task.temperature
    if encoded[0].num_flags is not None:
        return PoolProbabilities(1 / (1 + np.exp(-scores)), task.labels, is_multi_label=True)
    return PoolProbabilities(normalize(scores), task.labels)


def _find_least_sure(scores: Logits) -> Numbers:
    """Return the probabilities of the word whose two likeliest tags are closest."""
    shares = normalize(scores.astype(np.float64))
    best = np.sort(shares, axis=1)[:, -2:]
    least: Numbers = shares[np.argmin(best[:, 1] - best[:, 0])]
    return least
