"""Judge the labels of rows by predictions of layers that haven't seen them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertkit.recipes.review.answer_spans import find_given, plant_spans
from bertkit.recipes.review.label_errors import (
    Flags,
    Ids,
    LabelErrors,
    Numbers,
    find_label_errors,
    find_number_errors,
    find_span_errors,
    group_errors,
    plant_errors,
)
from bertkit.tasks.answer.scoring import NO_ANSWER
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits
from bertkit.tasks.classify.decoding import NO_LABEL
from bertkit.tasks.task import AnyTask, TaskExample


@dataclass(frozen=True)
class Judgment:
    """What is thought of the label of each row.

    Attributes:
        errors: how suspicious each label is, and which count as errors.
        likely: what is expected instead of each label.
        probability: of that, from 0 to 1; NaN where there is none.
    """

    errors: LabelErrors
    likely: Sequence[str]
    probability: Numbers


@dataclass(frozen=True)
class GivenLabels:
    """The labels of rows: one a row, or a tag of each word, or whether each label is given.

    Attributes:
        ids: of all labels.
        owners: the row of each, ascending.
    """

    ids: Ids
    owners: Ids


def judge(
    task: AnyTask,
    examples: Sequence[TaskExample],
    encoded: Sequence[Encoded],
    logits: Sequence[Logits],
) -> Judgment:
    """Judge the label of each row by its out-of-fold logits."""
    if task.name == "regress":
        return _judge_numbers(encoded, logits)
    if task.name == "answer":
        return _judge_answers(task, examples, encoded, logits)
    given = list_labels(task, encoded)
    probabilities = find_probabilities(task, encoded, logits)
    errors = find_label_errors(probabilities, given.ids)
    by_row, worst = group_errors(errors, given.owners, len(encoded))
    probability = np.where(worst < 0, np.nan, probabilities[worst, by_row.likely])
    places = worst - np.searchsorted(given.owners, np.arange(len(encoded)))
    rows = zip(examples, encoded, places.tolist(), by_row.likely.tolist(), strict=True)
    if encoded[0].num_flags is not None:
        return Judgment(by_row, *_find_likely_sets(task, encoded, probabilities[:, 1]))
    return Judgment(by_row, [_show_likely(task, *row) for row in rows], probability)


def _find_likely_sets(
    task: AnyTask, encoded: Sequence[Encoded], probabilities: Numbers
) -> tuple[list[str], Numbers]:
    """Return the likely labels of rows that have several, and the probability of just these."""
    shares = probabilities.reshape(len(encoded), -1)
    given = np.array([one.label_rows[0] for one in encoded]) > 0
    is_likely = shares >= 0.5
    if given.any(axis=1).all():  # none is likely without labels: then the likeliest other one
        none = np.flatnonzero(~is_likely.any(axis=1))
        is_likely[none, np.where(given, -1, shares)[none].argmax(axis=1)] = True
    names = [
        ", ".join(task.labels[number] for number in np.flatnonzero(row)) or NO_LABEL
        for row in is_likely
    ]
    return names, np.where(is_likely, shares, 1 - shares).prod(axis=1)


def _judge_numbers(encoded: Sequence[Encoded], logits: Sequence[Logits]) -> Judgment:
    values = np.concatenate([one.label_rows for one in encoded]).astype(np.float64)
    predictions = np.array([rows.mean(dtype=np.float64) for rows in logits])
    errors = find_number_errors(predictions, values)
    return Judgment(errors, [f"{value:.3g}" for value in predictions], np.full(len(values), np.nan))


def _judge_answers(
    task: AnyTask,
    examples: Sequence[TaskExample],
    encoded: Sequence[Encoded],
    logits: Sequence[Logits],
) -> Judgment:
    answers = [task.decode(*row) for row in zip(examples, encoded, logits, strict=True)]
    given = np.array([find_given(one) for one in encoded])
    predicted = np.array([(answer.start or 0, answer.stop or 0) for answer in answers])
    probability = np.array([answer.probability for answer in answers])
    errors = find_span_errors(given, predicted, probability)
    return Judgment(errors, [answer.text or NO_ANSWER for answer in answers], probability)


def _show_likely(
    task: AnyTask, example: TaskExample, encoded: Encoded, place: int, likely: int
) -> str:
    """Return what is expected of a row; `place` is that of its most suspicious label."""
    if place < 0:
        return ""
    if task.scored == "choice":
        return str(getattr(example, "choices", {})[likely])
    if task.scored == "token":
        sentence, rows = encoded.alignment
        tagged = np.flatnonzero(encoded.label_rows[rows] != IGNORED_LABEL)
        return f"{sentence.words[tagged[place]]} {task.labels[likely]}"
    return task.labels[likely]


def find_probabilities(
    task: AnyTask, encoded: Sequence[Encoded], logits: Sequence[Logits]
) -> Numbers:
    """Return the probability of each label that may be given, `[given labels, classes]`."""
    if task.scored == "token":
        words = zip(encoded, logits, strict=True)
        scores = np.concatenate([rows[_find_tagged(one)] for one, rows in words]).astype(np.float64)
    elif task.scored == "choice":
        scores = np.full((len(logits), max(map(len, logits))), -np.inf)
        for row, values in zip(scores, logits, strict=True):
            row[: len(values)] = values
    else:
        scores = np.array([rows.mean(axis=0) for rows in logits], dtype=np.float64)
        if encoded[0].num_flags is not None:
            scores = np.stack([np.zeros_like(scores), scores], axis=-1).reshape(-1, 2)
    return normalize(scores / task.temperature)


def normalize(scores: Numbers) -> Numbers:
    """Return the probabilities of logits, `[rows, labels]`."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Numbers = powers / powers.sum(axis=1, keepdims=True)
    return shares


def list_labels(task: AnyTask, encoded: Sequence[Encoded]) -> GivenLabels:
    """Return the labels that are judged."""
    if task.scored == "token":
        own = [one.label_rows[_find_tagged(one)] for one in encoded]
    else:
        own = [one.label_rows.ravel() for one in encoded]
    owners = np.repeat(np.arange(len(own)), [len(each) for each in own])
    return GivenLabels(np.concatenate(own).astype(np.int64), owners)


def _find_tagged(one: Encoded) -> Ids:
    """Return the rows of the words of a sentence that have a known tag."""
    rows: Ids = one.alignment[1]
    tagged: Ids = rows[one.label_rows[rows] != IGNORED_LABEL]
    return tagged


def plant(
    task: AnyTask, encoded: Sequence[Encoded], share: float, seed: int
) -> tuple[list[Encoded], Flags]:
    """Exchange a label in a share of the rows; return the rows with them, and which they are."""
    if task.name == "regress":
        values, ids = np.unique([one.label_rows[0] for one in encoded], return_inverse=True)
        changed, is_planted = plant_errors(ids, share, seed)
        rows = zip(encoded, values[changed], strict=True)
        return [
            replace(one, labels=np.full_like(one.label_rows, to)) for one, to in rows
        ], is_planted
    if task.name == "answer":
        return plant_spans(encoded, share, seed)
    given = list_labels(task, encoded)
    changed, is_planted = plant_errors(given.ids, share, seed, given.owners)
    stops = np.searchsorted(given.owners, np.arange(1, len(encoded)))
    own = zip(encoded, np.split(changed, stops), strict=True)
    is_changed = np.bincount(given.owners, is_planted, minlength=len(encoded)) > 0
    return [_exchange(task, one, ids) for one, ids in own], is_changed


def _exchange(task: AnyTask, one: Encoded, ids: Ids) -> Encoded:
    """Return a row with other labels."""
    if task.scored == "token":
        labels = one.label_rows.copy()
        labels[_find_tagged(one)] = ids
        return replace(one, labels=labels)
    return replace(one, labels=ids if one.num_flags is None else np.flatnonzero(ids))
