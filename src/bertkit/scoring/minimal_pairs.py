"""Minimal pairs: which of two sentences, one acceptable and one not, does a model find likelier?

Source: Warstadt et al. 2020, "BLiMP: The Benchmark of Linguistic Minimal Pairs for English"
(1912.00582).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertkit.base.errors import InputError
from bertkit.base.progress import show_progress
from bertkit.data.tables.record import BrokenRowError, Record, RowReport
from bertkit.data.tables.records import gather, open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.examples import Numbers
from bertkit.scoring.text_scorer import TextScorer

GOOD, BAD = "sentence_good", "sentence_bad"
PHENOMENON, PARADIGM = "linguistics_term", "UID"  # columns that a file may lack
SEED = 0  # of the intervals


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in little.

    Attributes:
        good: the acceptable sentence.
        bad: the other one.
        phenomenon: what the difference shows, such as `anaphor_agreement`; may be empty.
        paradigm: the kind of pair within the phenomenon; may be empty.
    """

    good: str
    bad: str
    phenomenon: str = ""
    paradigm: str = ""


@dataclass(frozen=True)
class PairAccuracy:
    """The share of pairs whose acceptable sentence is likelier.

    Attributes:
        num_pairs: number of pairs.
        accuracy: the share; equally likely sentences count as wrong.
        interval: 95 % bootstrap confidence interval.
    """

    num_pairs: int
    accuracy: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, is_right: Sequence[bool]) -> "PairAccuracy":
        """Compute it from one outcome per pair."""
        right = np.array(is_right, dtype=np.float64)

        def find_share(weights: Numbers) -> Numbers:
            return np.asarray(weights @ right / weights.sum(axis=1))

        interval = bootstrap_interval(find_share, len(right), seed=SEED)
        return cls(len(right), float(right.mean()), (interval.low, interval.high))


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


def judge_pairs(scorer: TextScorer, source: str | Path, settings: RecordSettings) -> PairsResult:
    """Score both sentences of each pair of a file.

    Args:
        scorer: the model.
        source: a file with the columns sentence_good and sentence_bad, and perhaps
            linguistics_term and UID, as BLiMP has them.
        settings: how the file is read.

    Raises:
        InputError: columns are missing, too many rows are broken, or there are no pairs.
        BertkitError: the file can't be read.
    """
    pairs, problems = read_pairs(source, settings)
    outcomes = []
    with show_progress("Judging", len(pairs)) as progress:
        scores = scorer.stream(text for pair in pairs for text in (pair.good, pair.bad))
        for good in scores:
            outcomes.append((good.log_probability, next(scores).log_probability))
            progress.advance(1)
    is_right = [good > bad for good, bad in outcomes]
    return PairsResult(
        PairAccuracy.of(is_right),
        group_accuracies([pair.phenomenon for pair in pairs], is_right),
        group_accuracies([pair.paradigm for pair in pairs], is_right),
        outcomes,
        problems,
    )


def read_pairs(source: str | Path, settings: RecordSettings) -> tuple[list[MinimalPair], list[str]]:
    """Read the pairs of a file, and messages about rows that were left out."""
    table = open_records(source, settings)
    missing = [name for name in (GOOD, BAD) if name not in (table.columns or ())]
    if missing:
        raise InputError(
            f"{table.name} has no column {' and no '.join(missing)}; minimal pairs need {GOOD} and"
            f" {BAD}"
        )
    report = RowReport(table.name)
    pairs = gather(table, parse_pair, report)
    if not pairs:
        raise InputError(f"{table.name} has no pairs")
    return pairs, report.first_broken


def parse_pair(record: Record) -> MinimalPair:
    """Read a pair from a record."""
    values = record.values
    sentences = []
    for column in (GOOD, BAD):
        text = values.get(column)
        if not isinstance(text, str) or not text.strip():
            raise BrokenRowError(f"{record.place}: {column} isn't a text")
        sentences.append(text)
    good, bad = sentences
    groups = [str(values.get(column) or "") for column in (PHENOMENON, PARADIGM)]
    return MinimalPair(good, bad, *groups)


def group_accuracies(names: Sequence[str], is_right: Sequence[bool]) -> dict[str, PairAccuracy]:
    """Compute the accuracy of each named group; pairs without a name belong to none."""
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for name, outcome in zip(names, is_right, strict=True):
        if name:
            groups[name].append(outcome)
    return {name: PairAccuracy.of(groups[name]) for name in sorted(groups)}
