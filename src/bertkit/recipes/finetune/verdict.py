"""The verdict on a run: whether the model became better on held-out rows, and by how much.

Training keeps the checkpoint that is best on the held-out rows, so its figure on these rows is too
high, and higher the more checkpoints there were. So the rows are halved: the step that is best on
one half is compared with the start on the other half, and the other way round. Each difference is
then on rows that didn't choose the step.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 13 and 17.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from bertkit.base.errors import pluralize
from bertkit.checkpoints.run_folder import SavedNumber
from bertkit.reports.text import format_metric, format_number, is_share
from bertkit.tasks.metrics.correlation import bootstrap_interval
from bertkit.tasks.metrics.shares import QUANTILE
from bertkit.tasks.ranking import RowValues
from bertkit.tasks.sections import show_name

FOLD_SEED = 0
FEWEST_GROUPS = 10  # fewer say too little about others
LARGEST_GROUP = 0.2  # share of the rows

MORE_NEGATIVES = (
    "What usually helps: more pairs, passages that look relevant and aren't (--negatives mine), and"
    " a larger --batch-size, each of whose passages is a negative of the other queries."
)
MORE_QUERIES = (
    "What usually helps: more queries, more --epochs, since the head starts at random, and passages"
    " that look relevant and aren't (--negatives mine)."
)
MORE_PAIRS = (
    "What usually helps: more scored pairs, of all degrees of similarity, and a start that was"
    " trained on similar texts."
)
HOW = (
    "The held-out rows were halved. On each half the model is that of the step which is best on the"
    " other half, so that no row is judged by a step that it chose; {together}."
    " In parentheses: the 95 % interval, by resampling."
)
TOGETHER = "rows that share a text are in the same half"
DIVIDED = (
    "rows that share a passage are in the same half, but {number:,} rows, which a chain of shared"
    " texts links, are in both, so the interval may be too narrow"
)
PLURALS = {"query": "queries", "pair": "pairs"}

Word = Literal["BETTER", "NO CLEAR DIFFERENCE", "WORSE"]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Groups = npt.NDArray[np.int64]


class Verdict(BaseModel):
    """The difference that training made on held-out rows.

    Attributes:
        metric: higher is better.
        before: the metric of the start.
        after: of the chosen steps, each on rows that didn't choose it.
        difference: between them, with its 95 % interval from `low` to `high`.
        unit: what a row is: a query or a pair.
        num_groups: rows that share a text are one group; groups were resampled.
        num_divided: rows that share texts with rows of other groups, too; see `number_groups`.
        is_head_random: whether the untrained model can't do the task, so the start is another one.
        chosen: the steps that were chosen on either half; 0 is the start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    word: Word
    metric: str
    before: SavedNumber
    after: SavedNumber
    difference: SavedNumber
    low: SavedNumber
    high: SavedNumber
    num_rows: int
    unit: Literal["query", "pair"]
    num_groups: int
    num_divided: int = 0
    is_head_random: bool = False
    num_changed: int  # groups with a difference
    chosen: tuple[int, int]

    def describe(self) -> str:
        """Describe it in a line, such as `before: nDCG@10 40.1 %   after: 46.3 %   +6.2 …`."""
        name, plural = show_name(self.metric), f"held-out {PLURALS[self.unit]}"
        rows = pluralize(self.num_rows, f"held-out {self.unit}", plural)
        before, after = (format_metric(self.metric, each) for each in (self.before, self.after))
        return (
            f"before: {name} {before}   after: {after}   {self.describe_difference()}"
            f" on {rows}: {self.word}"
        )

    def describe_difference(self) -> str:
        """Describe the difference with its interval, such as +6.2 (3.9 to 8.6)."""
        if not math.isfinite(self.difference):
            return "no difference is defined"
        shown, low, high = map(self._show, (self.difference, self.low, self.high))
        interval = f" ({low} to {high})" if self.has_interval else ""
        return f"{'+' * (self.difference > 0)}{shown}{interval}"

    def _show(self, number: float) -> str:
        """Format a difference: in points of a share."""
        return f"{100 * number:.1f}" if is_share(self.metric) else format_number(number)

    def describe_method(self) -> str:
        """Describe how the verdict was found."""
        divided = DIVIDED.format(number=self.num_divided)
        return HOW.format(together=divided if self.num_divided else TOGETHER)

    @property
    def has_interval(self) -> bool:
        """Whether the groups are enough for one."""
        return self.num_groups >= FEWEST_GROUPS and math.isfinite(self.low + self.high)

    @property
    def reason(self) -> str:
        """Why there is no clear difference, where the rows are too few for one; otherwise ""."""
        if not math.isfinite(self.difference):
            return f"{show_name(self.metric)} isn't defined on so few or so similar rows."
        if self.num_groups < FEWEST_GROUPS:
            groups = pluralize(self.num_groups, "group")
            few = "is" if self.num_groups == 1 else "are"
            return f"{groups} of held-out rows that share no text {few} too few to say."
        return ""

    def list_advice(self) -> list[str]:
        """Return what usually helps, a sentence each, if the model didn't become better."""
        if self.word == "BETTER":
            return []
        lines = [self.reason] if self.reason else []
        if self.chosen == (0, 0):
            lines.append("On neither half of the held-out rows was a step better than the start.")
        if self.word == "WORSE" and not self.is_head_random:
            lines.append("A lower --learning-rate or fewer --epochs change the start less.")
        if self.word != "WORSE":
            lines.append("More held-out rows narrow the interval: --dev, or a larger --held-out.")
        helps = MORE_NEGATIVES if self.unit == "query" else MORE_PAIRS
        return [*lines, MORE_QUERIES if self.is_head_random else helps]


def judge(
    metric: str, start: RowValues, steps: Sequence[tuple[int, RowValues]], groups: Groups
) -> Verdict:
    """Compare the best of some steps with the start, on rows that didn't choose it.

    Args:
        start: the values before training.
        steps: those that may be chosen, with their values of the same rows. The start is among
            them if it may be the model.
        groups: the number of each row's group, `[rows]`, from 0.
    """
    folds = deal_folds(groups)
    chosen = [choose_step(steps, folds != fold) for fold in (0, 1)]
    halves = [(folds == fold, steps[place][1]) for fold, place in enumerate(chosen)]
    compared = _Compared(start, halves, groups)
    num_groups = int(groups.max()) + 1
    before, after = map(float, compared.measure(np.ones(num_groups)))
    num_changed = compared.count_changed()
    resampled = bootstrap_interval(compared.subtract, num_groups)
    low, high = (widen(after - before, end, num_changed) for end in resampled)
    found = Verdict(
        word="NO CLEAR DIFFERENCE",
        metric=metric,
        before=before,
        after=after,
        difference=after - before,
        low=low,
        high=high,
        num_rows=len(groups),
        unit="query" if start.truth is None else "pair",
        num_groups=num_groups,
        num_changed=num_changed,
        chosen=(steps[chosen[0]][0], steps[chosen[1]][0]),
    )
    is_clear = not found.reason and found.low * found.high > 0
    word = "BETTER" if found.low > 0 else "WORSE"
    return found.model_copy(update={"word": word}) if is_clear else found


def widen(difference: float, end: float, num_changed: int) -> float:
    """Widen an interval that was resampled from few changed groups, which is too narrow.

    It gets the quantile of Student's t instead of the normal distribution's, by its expansion
    (Abramowitz and Stegun 1964, formula 26.7.5), and the standard deviation of a sample.
    """
    if num_changed < 2:
        return end
    z, degrees = QUANTILE, num_changed - 1
    quantile = (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )
    factor = quantile / z * math.sqrt(num_changed / degrees)
    return difference + factor * (end - difference)


@dataclass(frozen=True)
class _Compared:
    """Two models on the same rows: the start, and on each half the step that the other chose."""

    start: RowValues
    halves: Sequence[tuple[Flags, RowValues]]  # the rows of a half, and the step's values
    groups: Groups

    def measure(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return the metric before and after, of groups that count as often as weights say.

        It is the mean of both halves by their number of rows, as each has a model of its own.
        """
        counted = weights[..., self.groups]
        before, after = np.zeros(weights.shape[:-1]), np.zeros(weights.shape[:-1])
        for is_here, values in self.halves:
            here = counted * is_here
            share = here.sum(axis=-1) / counted.sum(axis=-1)
            for total, model in ((before, self.start), (after, values)):
                total += np.where(share > 0, share * model.measure(here), 0.0)
        return before, after

    def subtract(self, weights: Numbers) -> Numbers:
        """Return the difference between both."""
        before, after = self.measure(weights)
        return after - before

    def count_changed(self) -> int:
        """Count the groups that have a row with another value than before."""
        is_changed = np.zeros(len(self.groups), dtype=np.bool_)
        for is_here, values in self.halves:
            is_changed |= is_here & (values.values != self.start.values)
        return len(np.unique(self.groups[is_changed]))


def judge_runs(
    metric: str,
    runs: Sequence[Mapping[int, RowValues]],
    groups: Groups,
    *,
    may_be_first: bool,
    num_divided: int = 0,
) -> Verdict:
    """Judge one run, or several that differ only in their seed, any of whose steps may be chosen.

    Args:
        runs: the row values of each by step, with those of step 0.
        may_be_first: whether the weights before the first step may be the model. Where the data
            know the values before training, they aren't those of step 0.
        num_divided: as in `Verdict`.
    """
    start = runs[0][0].before
    steps = [(0, start)] if may_be_first else []
    steps += [(step, rows) for run in runs for step, rows in sorted(run.items()) if step]
    found = judge(metric, start, steps, groups)
    changes = {"num_divided": num_divided, "is_head_random": not may_be_first}
    return found.model_copy(update=changes)


def choose_step(steps: Sequence[tuple[int, RowValues]], is_counted: npt.NDArray[np.bool_]) -> int:
    """Return the place of the step with the highest metric on some rows; the first of equals."""
    weights = is_counted.astype(np.float64)
    values = [float(each.measure(weights)) for _, each in steps]
    ranked = [value if math.isfinite(value) else -math.inf for value in values]
    return ranked.index(max(ranked))


def number_groups(names: Sequence[str | None], passages: Sequence[Hashable]) -> tuple[Groups, int]:
    """Number the groups of rows from 0; a row without a name is a group of its own.

    A group with a large share of all rows, which are linked in a chain of shared texts, is divided
    into rows that have the same passage: resampling few groups says nothing. Return the number of
    rows in groups that were divided, too.
    """
    rows: list[Hashable] = [row if name is None else name for row, name in enumerate(names)]
    counts = Counter(rows)
    is_large = [counts[row] > max(1, LARGEST_GROUP * len(rows)) for row in rows]
    finer = [
        (row, passage) if large else row
        for row, passage, large in zip(rows, passages, is_large, strict=True)
    ]
    parts = Counter(row for row, _ in {each for each in finer if isinstance(each, tuple)})
    num_divided = sum(counts[row] for row, number in parts.items() if number > 1)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in finer]), num_divided


def deal_folds(groups: Groups) -> Groups:
    """Deal groups to two folds of about as many rows; return the fold of each row, `[rows]`."""
    sizes = np.bincount(groups)
    folds, filled = np.zeros(len(sizes), dtype=np.int64), [0, 0]
    for group in np.random.default_rng(FOLD_SEED).permutation(len(sizes)):
        folds[group] = fold = filled.index(min(filled))
        filled[fold] += int(sizes[group])
    return folds[groups]
