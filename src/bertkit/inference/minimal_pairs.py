"""Minimal pairs: how often a model finds the acceptable one of two sentences the likelier."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import show_progress
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings, TableSettings
from bertkit.inference.text_scorer import TextScorer
from bertkit.tasks.metrics.shares import wilson_interval

GOOD, BAD = "sentence_good", "sentence_bad"
COLUMNS = (GOOD, BAD, "linguistics_term", "UID")  # a file may lack the last two


class MinimalPair(NamedTuple):
    """Two sentences that differ in little, the first of which is acceptable."""

    good: str
    bad: str
    phenomenon: str  # what the difference shows, such as `anaphor_agreement`; may be empty
    paradigm: str  # the kind of pair within the phenomenon; may be empty

    @classmethod
    def parse(cls, record: Record) -> Self:
        """Read a pair from a record."""
        for column in (GOOD, BAD):
            text = record.values.get(column)
            if not isinstance(text, str) or not text.strip():
                raise BrokenRowError(f"{record.place}: {column} isn't a text")
        return cls(*(str(record.values.get(name) or "") for name in COLUMNS))


@dataclass(frozen=True)
class PairAccuracy:
    """The share of pairs whose acceptable sentence is likelier.

    Attributes:
        num_pairs: number of pairs.
        accuracy: the share; equally likely sentences count as wrong.
        interval: 95 % confidence interval, by Wilson's method.
    """

    num_pairs: int
    accuracy: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, is_right: Sequence[bool]) -> "PairAccuracy":
        """Compute it from one outcome per pair."""
        share = float(np.mean(is_right))
        return cls(len(is_right), share, wilson_interval(share, len(is_right)))


@dataclass(frozen=True)
class PairsResult:
    """How a model judges minimal pairs.

    Attributes:
        whole: over all pairs.
        phenomena: by phenomenon, in the order of their names.
        paradigms: by paradigm, in the order of their names.
        outcomes: for each pair the log probabilities of the acceptable sentence and the other.
        problems: messages about rows that were left out.
    """

    whole: PairAccuracy
    phenomena: dict[str, PairAccuracy]
    paradigms: dict[str, PairAccuracy]
    outcomes: list[tuple[float, float]]
    problems: list[str]


def judge_pairs(
    load: Callable[[], TextScorer], source: str | Path, settings: TableSettings
) -> PairsResult:
    """Score both sentences of each pair of a file.

    Args:
        load: returns the model; it is called when the file was read.
        source: a file with the columns sentence_good and sentence_bad, and perhaps
            linguistics_term and UID, as BLiMP has them.
        settings: how the file is read.

    Raises:
        InputError: columns are missing, too many rows are broken, or there are no pairs.
        BertkitError: the file can't be read.
    """
    if settings.text_column is not None:
        raise SettingsError(f"minimal pairs are in {GOOD} and {BAD}; leave out text_column")
    table = open_records(source, RecordSettings(**settings.model_dump(exclude={"text_column"})))
    missing = [name for name in (GOOD, BAD) if name not in (table.columns or ())]
    if missing:
        raise InputError(
            f"{table.name} has no column {' and no '.join(missing)}; minimal pairs need {GOOD} and"
            f" {BAD}"
        )
    pairs = table.read(MinimalPair.parse)
    if not pairs:
        raise InputError(f"{table.name} has no pairs")
    table.report.announce_notes()
    scorer, outcomes = load(), []
    with show_progress("Judging", len(pairs)) as progress:
        scores = scorer.stream(text for pair in pairs for text in pair[:2])
        for good in scores:
            outcomes.append((good.log_probability, next(scores).log_probability))
            progress.advance(1)
    is_right = [  # a text may score otherwise, in its last bits, in another row of a batch
        good > bad and pair.good != pair.bad
        for pair, (good, bad) in zip(pairs, outcomes, strict=True)
    ]
    return PairsResult(
        PairAccuracy.of(is_right),
        group_accuracies([pair.phenomenon for pair in pairs], is_right),
        group_accuracies([pair.paradigm for pair in pairs], is_right),
        outcomes,
        table.report.first_broken,
    )


def group_accuracies(names: Sequence[str], is_right: Sequence[bool]) -> dict[str, PairAccuracy]:
    """Compute the accuracy of each named group; pairs without a name belong to none."""
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for name, outcome in zip(names, is_right, strict=True):
        if name:
            groups[name].append(outcome)
    return {name: PairAccuracy.of(groups[name]) for name in sorted(groups)}
