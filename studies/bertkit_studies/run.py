"""Run a study's missing cells one at a time, and write the results after each."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import BertkitError, SettingsError, StoppedError, StorageError
from bertkit.base.files import make_folder
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.base.signals import stop_at_once
from bertkit.training.device import choose_device, choose_precision
from bertkit.training.run import describe_versions
from bertkit_studies.outcome import Outcome, gather_outcome, write_results
from bertkit_studies.pace import StudyPace
from bertkit_studies.page import write_pages
from bertkit_studies.saved import (
    StudyRecord,
    check_machine,
    clear_remains,
    describe_study,
    list_tried,
    read_result,
    read_same,
    read_spent,
    write_failure,
    write_result,
    write_spent,
    write_study,
)
from bertkit_studies.study import Cell, Study

# Errors that fail a cell but not the study: those a user can fix, and too little memory.
FAILURES = (BertkitError, MemoryError, torch.OutOfMemoryError)


def run_study(study: Study[Any], output: Path, command: str = "") -> Outcome:
    """Run all unfinished cells, and write table and report.

    Args:
        study: the study.
        output: its folder.
        command: the command that reproduces it, for the report.

    Returns:
        The results of all its cells, including those of earlier calls.

    Raises:
        ResumeError: `output` holds a study with other settings or data, one that was begun on
            another machine and isn't done, or something else.
        SettingsError: an arm that is asked for doesn't exist, or `output` mixes with the data.
        StorageError: writing failed; finished cells are kept.
        StoppedError: a signal arrived; the same call resumes.
        BertkitError: the data can't be read. A cell's own error is written to its folder instead.
    """
    asked = list_cells(study, study.settings.seeds, study.settings.only)
    with stop_at_once(lambda: "stopped; the same command resumes with the missing runs"):
        wanted = describe_study(study)
        with open_output(
            output,
            "running a study in",
            inputs=study.settings.list_places(),
            check=partial(read_same, wanted),
            is_workplace=True,
        ):
            record = read_same(wanted, output) or begin(study, wanted, output)
            run_cells(study, record, asked, output, command)
            return write_outcome(study, record, output, command)


def list_cells(study: Study[Any], num_seeds: int, only: Sequence[str] = ()) -> list[Cell]:
    """Return the cells of the chosen or all arms: all arms with seed 0, then with the next."""
    names = [arm.name for arm in study.arms]
    if unknown := [name for name in only if name not in names]:
        raise SettingsError(
            f"the study {study.name} has no arm {unknown[0]!r}; it has {', '.join(names)}"
        )
    chosen = [name for name in names if not only or name in only]
    return [Cell(arm, seed) for seed in range(num_seeds) for arm in chosen]


def list_known(study: Study[Any], output: Path) -> list[Cell]:
    """Return the cells of all arms with the current seeds, and those that earlier calls tried."""
    names, num_seeds = [arm.name for arm in study.arms], study.settings.seeds
    more = [c for c in list_tried(output) if c.arm in names and c.seed >= num_seeds]
    more.sort(key=lambda cell: (cell.seed, names.index(cell.arm)))
    return [*list_cells(study, num_seeds), *more]


def count_seeds(num_asked: int, output: Path) -> int:
    """Return the number of seeds requested now, or tried by earlier calls if that is larger."""
    return max([num_asked, *(cell.seed + 1 for cell in list_tried(output))])


def begin(study: Study[Any], wanted: StudyRecord, output: Path) -> StudyRecord:
    """Make the study's one-time decisions, and write its record."""
    announce(f"{study.question} {study.budget}")
    decision = study.decide()
    record = wanted.model_copy(
        update={
            "values": dict(decision.values),
            "seconds": dict(decision.seconds),
            "versions": find_versions(study),
        }
    )
    make_folder(output)
    write_study(output, record)
    return record


def find_versions(study: Study[Any]) -> dict[str, str]:
    """Return the current versions of software and machine."""
    device = choose_device(study.settings.device)
    return describe_versions(device, choose_precision(study.precision, device, "training"))


def run_cells(
    study: Study[Any], record: StudyRecord, cells: Sequence[Cell], output: Path, command: str
) -> None:
    """Run unfinished cells, and announce the remaining time."""
    results = {cell: read_result(output, cell) for cell in cells}
    taken = {cell: result.seconds for cell, result in results.items() if result is not None}
    missing = [cell for cell in cells if cell not in taken]
    if missing:
        check_machine(record, find_versions(study))
    for number, cell in enumerate(missing):
        left = StudyPace(record.seconds, taken).describe(missing[number:])
        words = f"run {len(cells) - len(missing) + number + 1} of {len(cells)}: {cell.arm}"
        announce(f"{words}, seed {cell.seed}{f'; {left} left in all' if left else ''}")
        seconds = run_cell(study, record, cell, output)
        if seconds is not None:
            taken[cell] = seconds
        write_outcome(study, record, output, command)


def run_cell(study: Study[Any], record: StudyRecord, cell: Cell, output: Path) -> float | None:
    """Run one cell, and write its result or failure.

    Returns:
        The seconds that it took, including earlier calls; None if it failed.
    """
    clear_remains(output, cell)
    started = time.monotonic() - read_spent(output, cell)
    try:
        figures = study.run_cell(cell, output, record.decision)
    except StorageError:
        raise
    except StoppedError:
        write_spent(output, cell, time.monotonic() - started)
        raise
    except FAILURES as error:
        write_spent(output, cell, time.monotonic() - started)
        reason = write_failure(output, cell, error)
        announce(f"{cell.arm}, seed {cell.seed}, failed: {reason}")
        return None
    seconds = time.monotonic() - started
    write_result(output, cell, figures, seconds, find_versions(study))
    return seconds


def write_outcome(study: Study[Any], record: StudyRecord, output: Path, command: str) -> Outcome:
    """Write the results so far: rows, table and report."""
    outcome = gather_outcome(study, record, list_known(study, output), output)
    write_results(output, outcome)
    write_pages(output, outcome, command)
    return outcome
