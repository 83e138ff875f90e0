"""Write the report page of one run, or a comparison of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from bertkit.base.errors import SettingsError
from bertkit.base.files import check_new_file
from bertkit.base.output import open_output
from bertkit.reports.figures.svg import NUM_STYLES
from bertkit.reports.report import Report, write_report
from bertkit.run_reports.comparison import build_comparison
from bertkit.run_reports.examples import show_examples
from bertkit.run_reports.facts import RunFacts, find_run, read_facts
from bertkit.run_reports.page import build_page, last_metrics
from bertkit.run_reports.settings import ReportSettings

REPORT_FILE, COMPARISON_FILE = "report.html", "comparison.html"
ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class ReportResult:
    """The result of writing a report.

    Attributes:
        report: path of the page.
        runs: the runs that it shows.
    """

    report: Path
    runs: tuple[RunFacts, ...]


def report(
    paths: Sequence[Path], output: Path | None = None, settings: ReportSettings | None = None
) -> ReportResult:
    """Write a page on one run, or one that compares several; runs are read, never changed.

    Args:
        paths: runs of `bertkit pretrain`, models of `bertkit finetune` and folders of
            `bertkit demo`; several must be of one kind.
        output: the page; by default `report.html` in the run, or `comparison.html` here.
        settings: the settings of the report.

    Raises:
        SettingsError: the output exists, or doesn't end in .html; or data or texts were given for
            anything but one pre-training run.
        InputError: a path isn't a run, a run has no row yet, or the runs can't be compared.
        MissingFileError: a path doesn't exist.
        ResumeError: another process is writing the output.
        DamagedFileError: a file of a run isn't what was written.
        StorageError: writing failed.
    """
    settings = ReportSettings() if settings is None else settings
    check_paths(paths, settings)
    if output is None:
        is_single = len(paths) == 1
        output = find_run(paths[0]).folder / REPORT_FILE if is_single else Path(COMPARISON_FILE)
    check = partial(check_output, overwrite=settings.overwrite)
    with open_output(output, "writing a report into", check=check) as place:
        runs = tuple(read_facts(path, settings.data) for path in paths)
        page = build_single(runs[0], settings) if len(runs) == 1 else build_comparison(runs)
        write_report(place, page)
    return ReportResult(place, runs)


def build_single(facts: RunFacts, settings: ReportSettings) -> Report:
    """Build the page of one run."""
    if facts.task is None:
        return build_page(facts, show_examples(facts, settings.text) if settings.examples else [])
    if settings.text:
        raise SettingsError(
            f"text is for pre-training runs, and {facts.path} is of `bertkit {facts.kind}`; leave"
            " it out"
        )
    return build_page(facts, [])


def check_paths(paths: Sequence[Path], settings: ReportSettings) -> None:
    """Check the number of runs and that the settings fit it."""
    if not 1 <= len(paths) <= NUM_STYLES:
        raise SettingsError(f"expected one run, or up to {NUM_STYLES} to compare, got {len(paths)}")
    if len(paths) > 1 and (settings.data is not None or settings.text):
        raise SettingsError("data and text are for the report of one run; leave them out")


def check_output(output: Path, *, overwrite: bool) -> None:
    """Check that the output is a page, and replaces a file only if asked to."""
    if output.suffix.lower() not in ENDINGS:
        raise SettingsError(f"{output} must end in .html")
    check_new_file(output, overwrite=overwrite)


def summarize_run(facts: RunFacts) -> dict[str, Any]:
    """Return a run in numbers, for programs; null where there is none."""
    history, record = facts.history, facts.record
    speeds = list(filter(isfinite, history.train["tokens_per_second"]))
    return {
        "run": str(facts.run.folder),
        "kind": facts.kind,
        "step": history.num_steps,
        "num_steps": record.num_steps,
        "is_finished": facts.is_finished,
        "tokens": history.train.last("tokens"),
        "elapsed_seconds": history.train.last("elapsed_seconds"),
        "tokens_per_second": median(speeds) if speeds else None,
        "held_out": last_metrics(facts),
        "incidents": dict(history.num_incidents),
    }
