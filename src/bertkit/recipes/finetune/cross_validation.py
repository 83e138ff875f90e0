"""The cross-validated estimate of a solved head, where few rows are held out.

A share of under a hundred rows has an interval of more than ±8 points (of 80 % right). All rows,
each predicted by a head that was solved without its fold, say several times as much.
"""

from collections import Counter
from itertools import compress
from pathlib import Path
from typing import ClassVar, Self

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.checkpoints.run_folder import SavedNumber
from bertkit.recipes.finetune.few_shot import train_if_better
from bertkit.recipes.finetune.job import FineTuningJob, decode_all
from bertkit.recipes.solved_head import FOLDS_FOR_ALL, deal_folds, solve_head
from bertkit.reports.text import format_metric
from bertkit.tasks.classify.task import Classify

ESTIMATE_FILE = "cross_validated.json"  # in the folder of a run
ENOUGH_HELD_OUT = 100  # rows


class CrossValidated(ChecksummedModel):
    """Metrics over all rows, each predicted by a head that was solved without its fold."""

    description: ClassVar[str] = "the cross-validated estimate of a run"

    num_examples: int
    num_alone: int = 0  # others, whose label no other row has: no head could know it
    metrics: dict[str, SavedNumber]
    intervals: dict[str, tuple[SavedNumber, SavedNumber]]  # 95 %

    @classmethod
    def read(cls, run: Path) -> Self | None:
        """Read the estimate of a run; None if there is none."""
        path = run / ESTIMATE_FILE
        return cls.load(path) if path.exists() else None

    def describe(self) -> str:
        """Describe the estimate in a line."""
        shown = ", ".join(
            f"{name} {format_metric(name, value, self.intervals.get(name))}"
            for name, value in self.metrics.items()
        )
        alone = f" but {self.num_alone:,} whose label no other has" if self.num_alone else ""
        rows = f"all {self.num_examples + self.num_alone:,} rows{alone}"
        return f"By cross-validation on {rows}, of a head solved on the frozen encoder: {shown}"


def solve_and_validate(run: Path, job: FineTuningJob) -> None:
    """Solve the head; where few rows are held out, write the cross-validated estimate, too.

    With `few_shot`, the encoder is trained before if that is better. Then there is no estimate: the
    encoder has learned from all rows.
    """
    if isinstance(job.task, Classify) and job.task.settings.few_shot and train_if_better(run, job):
        solve_head(run, job.frozen)
        return
    train, dev = job.data.parts
    is_same = job.data.has_dev and train.sha256 == dev.sha256
    sets = [train] if is_same else [train, dev]
    examples = [example for labeled in sets for example in labeled.examples]
    is_needed = len(job.dev) < ENOUGH_HELD_OUT and len(examples) <= FOLDS_FOR_ALL
    folds = deal_folds(examples, job.settings.seed) if is_needed else []
    if len(folds) < 2:  # all texts are equal
        solve_head(run, job.frozen)
        return
    encoded = [one for labeled in sets for one in labeled.encoded]
    logits = solve_head(run, job.frozen, encoded[len(job.train) :], folds)
    strata = Counter(example.stratum for example in examples)
    known = [example.stratum is None or strata[example.stratum] > 1 for example in examples]
    scored = list(compress(examples, known))
    if not scored:
        return
    decoded = decode_all(job.task, scored, [*compress(encoded, known)], [*compress(logits, known)])
    scoring = job.task.score(scored, decoded)
    found, names = scoring.evaluate(), scoring.metrics.keys()
    CrossValidated(
        num_examples=len(scored),
        num_alone=len(examples) - len(scored),
        metrics={name: found.metrics[name] for name in names},
        intervals={name: each for name, each in found.intervals.items() if name in names},
    ).save(run / ESTIMATE_FILE)
