"""Review labeled rows without training a model: wrong labels, repeats, honest numbers.

An encoder computes features once; a linear layer on them, solved in seconds, predicts each row by
the others. Read `judgment.py` and `label_errors.py` next.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bertkit.base.errors import pluralize
from bertkit.base.progress import announce, show_progress
from bertkit.data.tables.records import RecordTable
from bertkit.recipes.finetune.job import decode_all
from bertkit.recipes.review.encoder import SEED, ComputedRows, computed_rows, load_encoder
from bertkit.recipes.review.judgment import judge, plant
from bertkit.recipes.review.label_errors import Flags, Numbers, check_errors
from bertkit.recipes.review.quality import measure_curve
from bertkit.recipes.review.repeats import RepeatedGroup, find_repeats
from bertkit.recipes.review.result import Quality, ReviewResult
from bertkit.recipes.review.rows import ReviewedRows, read_rows
from bertkit.recipes.review.table import Places, open_places, write_review
from bertkit.recipes.solved_head import NUM_FOLDS, HeadSolver, deal_folds
from bertkit.reports.text import make_legible, show
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.columns import SHOWN_CHARS
from bertkit.tasks.metrics.entities import OUTSIDE
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.task import AnyTask

PLANTED_SHARE = 0.05  # of the labels, in each of as many rounds as are needed
ENOUGH_PLANTED, MOST_ROUNDS = 100, 8
CURVE_SHARES = (0.2, 0.35, 0.55, 0.75, 1.0)  # of the rows that a layer is solved on
FEWEST_ROWS = 10
FEWEST_TEXTS = 5  # rows of the same text are in the same fold
MOST_LABELS = 1000


def review(
    tables: Sequence[RecordTable],
    settings: TaskSettings,
    model: str | Path,
    places: Places,
) -> ReviewResult:
    """Review the rows of a table, beside those of others.

    Args:
        tables: the first is reviewed; the others, such as a test file, are compared with it.
        settings: of the task, with the columns of the tables.
        model: an encoder, or a fine-tuned model, whose encoder is taken.
        places: where to write what was found.

    Raises:
        InputError: a table can't be read, or has no labels.
        BertkitError: the model can't be loaded, or the findings can't be written.
    """
    with open_places(places, tables) as (output, report):
        result = find_all(tables, settings, model)
        write_review(result, output, report)
    return result


def find_all(
    tables: Sequence[RecordTable], settings: TaskSettings, model: str | Path
) -> ReviewResult:
    """Return what a review finds."""
    files = read_files(tables, settings)
    for rows in files:
        for line in rows.labeled.problems:
            announce(make_legible(line))
    first = files[0]
    names = [rows.labeled.name for rows in files]
    result = ReviewResult(first, first.kind(first.settings), find_all_repeats(files), names)
    if (reason := find_obstacle(first)) is not None:
        return replace(result, obstacle=reason)
    task, bert, tokenizer = load_encoder(model, first)
    first.labeled.encode(task, tokenizer)
    with computed_rows(first, task, bert) as computed:
        return judge_rows(replace(result, task=task), computed)


def read_files(tables: Sequence[RecordTable], settings: TaskSettings) -> list[ReviewedRows]:
    """Read the rows of all files, by the labels of the first."""
    first = read_rows(tables[0], settings)
    known = sorted(set(first.labeled.label_names))
    for table in tables[1:]:
        table.find_as(tables[0])
    return [first, *(read_rows(table, first.settings, known=known) for table in tables[1:])]


def find_all_repeats(files: Sequence[ReviewedRows]) -> list[RepeatedGroup]:
    """Group the rows of all files that repeat each other."""
    texts, labels, numbers = list[tuple[str, ...]](), list[str | None](), list[int]()
    for number, rows in enumerate(files):
        for place, example in enumerate(rows.examples):
            texts.append(tuple(value for _, value in example.arguments))
            label = rows.show_label(place)
            if isinstance(example, TagExample):  # sentences that differ by a word have others
                label = ", ".join(tag for tag in example.label_names if tag != OUTSIDE) or OUTSIDE
            labels.append(label or None)
            numbers.append(number)
    return find_repeats(texts, labels, numbers)


def find_obstacle(rows: ReviewedRows) -> str | None:
    """Return why the labels of rows can't be checked; None if they can."""
    labels = Counter(rows.labeled.label_names)
    if len(rows.examples) < FEWEST_ROWS:
        return f"{pluralize(len(rows.examples), 'row')} are too few to check labels"
    if len(labels) == 1:
        return f"all rows have the label {show(next(iter(labels)), SHOWN_CHARS)}"
    if len(labels) > MOST_LABELS:
        return (
            f"there are {len(labels):,} different labels in {pluralize(len(rows.examples), 'row')},"
            " too many to check; is it the right column? --label-column names another"
        )
    if labels and max(labels.values()) == 1:
        return "every row has a label of its own; is it the right column? --label-column names it"
    if (number := len({tuple(one.arguments) for one in rows.examples})) < FEWEST_TEXTS:
        different = "one text" if number == 1 else f"{number} different texts"
        return f"{pluralize(len(rows.examples), 'row')} of {different} are too few to check labels"
    return None


def judge_rows(result: ReviewResult, computed: ComputedRows) -> ReviewResult:
    """Judge labels, measure how well rows are predicted, and check both by planted errors."""
    examples, frozen = result.rows.examples, computed.frozen
    twins = {number: group.members[0] for number, group in result.groups.items()}
    folds = deal_folds(examples, SEED, twins)
    solver = HeadSolver(frozen, computed.features, folds)
    penalty = solver.choose_penalty()
    num_rounds = min(MOST_ROUNDS, math.ceil(ENOUGH_PLANTED / (PLANTED_SHARE * len(examples))))
    runs, planted = list[list[Logits]](), list[tuple[Numbers, Flags]]()
    with show_progress("cross-validating", num_rounds + len(CURVE_SHARES)) as bar:
        for share in CURVE_SHARES:
            runs.append(solver.cross_validate(penalty, share))
            bar.advance(1)
        task = result.task.fit_numbers(examples, frozen.examples, runs[-1])
        for seed in range(num_rounds):
            changed, is_planted = plant(task, frozen.examples, PLANTED_SHARE, seed)
            logits = solver.cross_validate(penalty, examples=changed)
            judged = judge(task, examples, changed, logits)
            planted.append((judged.errors.suspicion, is_planted))
            bar.advance(1)
    judgment = judge(task, examples, frozen.examples, runs[-1])
    has_text = np.array([any(text.strip() for _, text in one.arguments) for one in examples])
    errors, check = check_errors(judgment.errors, *map(np.concatenate, zip(*planted, strict=True)))
    return replace(
        result,
        task=task,
        judgment=replace(judgment, errors=replace(errors, is_error=errors.is_error & has_text)),
        planted=check,
        quality=measure_quality(task, result.rows, frozen.examples, runs),
    )


def measure_quality(
    task: AnyTask, rows: ReviewedRows, encoded: Sequence[Encoded], runs: Sequence[Sequence[Logits]]
) -> Quality:
    """Measure how well rows are predicted by more and more of the others.

    A label that only one row has is left out: nothing could predict it.
    """
    counts = Counter(rows.labeled.label_names)
    once = set[str]()
    if task.name == "classify" and encoded[0].num_flags is None:
        once = {label for label, count in counts.items() if count == 1}
    kept = [place for place, one in enumerate(rows.examples) if once.isdisjoint(one.label_names)]
    hidden = [id_ for id_, label in enumerate(task.labels) if label in once]
    examples = [rows.examples[place] for place in kept]
    chosen = [encoded[place] for place in kept]
    scorings = []
    for run in runs:
        logits = [_hide(run[place], hidden) for place in kept]
        scorings.append(task.score(examples, decode_all(task, examples, chosen, logits)))
    metric = choose_metric(task)
    num_others = len(kept) * (NUM_FOLDS - 1) / NUM_FOLDS
    curve = measure_curve(scorings, metric, [share * num_others for share in CURVE_SHARES])
    is_number = task.name == "regress"  # none of which is predicted exactly
    wrong = [(scoring.errors > 0) & (not is_number) for scoring in scorings]
    hard = np.array(kept)[np.all(wrong, axis=0)].tolist()
    return Quality(metric, scorings[-1].evaluate(), curve, hard)


def _hide(logits: Logits, labels: list[int]) -> Logits:
    """Return logits by which none of some labels is predicted."""
    found = logits.copy()
    if labels:
        found[:, labels] = -np.inf
    return found


def choose_metric(task: AnyTask) -> str:
    """Return the metric that is shown: macro F1 of one label a row, else that of the task."""
    is_single = task.name == "classify" and task.metric == "accuracy"
    return "macro_f1" if is_single else task.metric
