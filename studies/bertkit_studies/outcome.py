"""The outcome of a study: figures by arm, verdicts on the claims, and both as rows and text."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.base.checksummed_json import add_row_checksum
from bertkit.base.errors import NonFiniteError
from bertkit.base.files import write_file
from bertkit.base.settings import list_differences
from bertkit_studies.saved import CellFailure, CellResult, StudyRecord, read_failure, read_result
from bertkit_studies.study import Arm, Cell, Claim, Figure, Measure, Side, Study
from bertkit_studies.verdict import Spread, Verdict, show_spread, summarize

RESULTS_FILE = "results.jsonl"


@dataclass(frozen=True)
class Outcome:
    """The results of a study so far.

    Attributes:
        study: the study.
        record: the settings and data that it began with.
        results: results of finished cells.
        failures: errors of failed cells.
        missing: cells that haven't run.
    """

    study: Study[Any]
    record: StudyRecord
    results: Mapping[Cell, CellResult]
    failures: Mapping[Cell, CellFailure]
    missing: Sequence[Cell]

    @property
    def other_versions(self) -> dict[Cell, list[str]]:
        """Cells whose software or machine differed from the study's, with the differences.

        A result without recorded versions counts as equal.
        """
        old = self.record.versions
        found = {
            cell: list_differences(old, new)
            for cell, result in self.results.items()
            if (new := result.versions)
        }
        return {cell: differences for cell, differences in found.items() if differences}

    @property
    def arms(self) -> list[Arm]:
        """The arms with at least one finished cell."""
        done = {cell.arm for cell in self.results}
        return [arm for arm in self.study.arms if arm.name in done]

    @property
    def measures(self) -> list[Measure]:
        """The measures with at least one figure."""
        found = {figure.measure for _, figure in self.list_figures()}
        return [measure for measure in self.study.measures if measure.name in found]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each claim."""
        measures = {measure.name: measure for measure in self.study.measures}
        return [self._judge(claim, measures[claim.measure]) for claim in self.study.claims]

    def list_figures(self) -> Iterable[tuple[Cell, Figure]]:
        """Yield all figures with their cells."""
        for cell, result in self.results.items():
            for figure in result.list_figures():
                yield cell, figure

    def places(self, measure: Measure, arm: str) -> list[float]:
        """Return the positions at which an arm was measured, in ascending order."""
        places = {
            figure.at
            for cell, figure in self.list_figures()
            if (cell.arm, figure.measure) == (arm, measure.name) and figure.at is not None
        }
        return sorted(places)

    def spread(self, measure: Measure, side: Side) -> Spread:
        """Return an arm's figures over its seeds; for a curve, those at the nearest position."""
        at = side.at if side.at is not None or measure.across is None else math.inf
        if measure.across is not None and at is not None:
            at = _find_nearest(self.places(measure, side.arm), at)
        values = [
            figure.value
            for cell, figure in self.list_figures()
            if (cell.arm, figure.measure, figure.at) == (side.arm, measure.name, at)
        ]
        num_failed, num_diverged = self._count_failures(side.arm), self._count_diverged(side.arm)
        if measure.is_speed:
            num_diverged = 0  # speed doesn't depend on divergence
        return Spread.of(values, num_failed - num_diverged, num_diverged)

    def _count_failures(self, arm: str) -> int:
        return sum(cell.arm == arm for cell in self.failures)

    def _count_diverged(self, arm: str) -> int:
        """Count the failures of an arm whose training diverged."""
        return sum(
            cell.arm == arm and failure.error == NonFiniteError.__name__
            for cell, failure in self.failures.items()
        )

    def _judge(self, claim: Claim, measure: Measure) -> Verdict:
        better, worse = (self.spread(measure, side) for side in (claim.better, claim.worse))
        return Verdict(claim, measure, better, worse, self._explain_absence(claim))

    def _explain_absence(self, claim: Claim) -> str:
        """Explain why a side of a claim has no figures."""
        done = {arm.name for arm in self.arms}
        for side in (claim.better, claim.worse):
            if side.arm not in done:
                return f"no run of {side.arm} is done"
        return "the data has no task to measure it"

    def tabulate(self) -> tuple[list[str], list[list[str]]]:
        """Return columns and rows of the arms' medians and ranges; for a curve, its last figure."""
        measures = self.measures
        columns = ["arm", "runs", *(_name_column(measure) for measure in measures)]
        rows = []
        for arm in self.arms:
            done = sum(cell.arm == arm.name for cell in self.results)
            failed = self._count_failures(arm.name)
            runs = f"{done} of {done + failed}" if failed else str(done)
            shown = [show_spread(each, self.spread(each, Side(arm.name))) for each in measures]
            rows.append([arm.name, runs, *shown])
        return columns, rows

    def summarize(self) -> str:
        """Summarize the verdicts and the failed or missing runs."""
        words = f"{summarize(self.verdicts)}."
        if self.failures:
            words += f" {len(self.failures)} of {self.num_cells} runs failed."
        if self.missing:
            words += f" {len(self.missing)} of {self.num_cells} runs weren't made."
        if others := self.other_versions:
            words += f" {len(others)} of {self.num_cells} runs had other software or hardware."
        return words

    @property
    def num_cells(self) -> int:
        """Number of cells, whether they have run or not."""
        return len(self.results) + len(self.failures) + len(self.missing)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values; undefined numbers are null."""
        return {
            "study": self.study.name,
            "question": self.study.question,
            "settings": self.record.settings,
            "decided": self.record.values,
            "arms": [
                {
                    "arm": arm.name,
                    "measures": {each.name: self._describe(each, arm) for each in self.measures},
                }
                for arm in self.arms
            ],
            "verdicts": [
                {
                    "claim": verdict.claim.text,
                    "source": verdict.claim.source,
                    "measure": verdict.measure.name,
                    "standing": verdict.standing.name.lower(),
                    "better": list(verdict.better.values),
                    "worse": list(verdict.worse.values),
                    "why": verdict.compare(),
                }
                for verdict in self.verdicts
            ],
            "failures": [
                {"arm": cell.arm, "seed": cell.seed, "error": one.error, "message": one.message}
                for cell, one in self.failures.items()
            ],
            "missing": [{"arm": cell.arm, "seed": cell.seed} for cell in self.missing],
        }

    def _describe(self, measure: Measure, arm: Arm) -> list[dict[str, Any]]:
        places = self.places(measure, arm.name) if measure.across is not None else [None]
        found = []
        for at in places:
            spread = self.spread(measure, Side(arm.name, at))
            values = list(spread.values)
            median = spread.median if values else None
            place = {} if at is None else {"at": at}
            found.append({**place, "median": median, "values": values})
        return found


def gather_outcome(
    study: Study[Any], record: StudyRecord, cells: Sequence[Cell], folder: Path
) -> Outcome:
    """Read the results of all cells so far."""
    results, failures, missing = {}, {}, []
    for cell in cells:
        if (result := read_result(folder, cell)) is not None:
            results[cell] = result
        elif (failure := read_failure(folder, cell)) is not None:
            failures[cell] = failure
        else:
            missing.append(cell)
    return Outcome(study, record, results, failures, missing)


def write_results(folder: Path, outcome: Outcome) -> None:
    """Write every figure as a checksummed row, and every failure."""
    rows: list[dict[str, Any]] = []
    for cell, figure in outcome.list_figures():
        place = {} if figure.at is None else {"at": figure.at}
        value = figure.value if math.isfinite(figure.value) else None
        row = {"arm": cell.arm, "seed": cell.seed, "measure": figure.measure, **place}
        rows.append({**row, "value": value})
    for cell, failure in outcome.failures.items():
        rows.append({"arm": cell.arm, "seed": cell.seed, "failure": failure.message})
    lines = "".join(f"{add_row_checksum(row)}\n" for row in rows)
    write_file(folder / RESULTS_FILE, lines.encode())


def _name_column(measure: Measure) -> str:
    best = "higher" if measure.is_higher_better else "lower"
    return f"{measure.title} ({best} is better)"


def _find_nearest(places: Sequence[float], at: float) -> float | None:
    """Return the position nearest to `at`, which may be infinite."""
    if not places:
        return None
    if math.isinf(at):
        return places[0] if at < 0 else places[-1]
    return min(places, key=lambda place: abs(place - at))
