"""Prepare a corpus: plan units of work, run them in parallel, gather a manifest.

A unit is a pure function of its sources, the settings and the tokenizer, and writes files under
names of its own, so the output is the same for any number of workers, and units that are done need
not be done again.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from bertkit.base.errors import BertkitError, InputError, ResumeError, StoppedError
from bertkit.base.files import make_folder, read_json, remove_folder, verify_file, write_json
from bertkit.base.progress import show_progress
from bertkit.base.settings import list_differences, parse_settings
from bertkit.data.readers import open_corpus
from bertkit.data.readers.document import ReadReport
from bertkit.data.readers.sources import Source
from bertkit.data.shards import (
    MANIFEST,
    SHARDS_FOLDER,
    TOKEN_COUNTS,
    TOKENIZER_FOLDER,
    ShardsManifest,
    SplitCounts,
    read_manifest,
    write_array,
)
from bertkit.recipes.prepare.settings import PrepareSettings
from bertkit.recipes.prepare.unit import UNITS_FOLDER, UnitResult, prepare_unit, unit_path
from bertkit.tokenization.tokenizer import Tokenizer

PLAN = "plan.json"
UNIT_BYTES = 16 << 20
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class PrepareResult:
    """What was prepared.

    Attributes:
        manifest: of the shards.
        was_done: True where all was there already and nothing was written.
        elapsed_seconds: time of this call.
        bytes_per_second: raw text prepared by this call, in UTF-8, a second.
        report: what was odd in the input, for people.
    """

    manifest: ShardsManifest
    was_done: bool
    elapsed_seconds: float
    bytes_per_second: float
    report: list[str]


def prepare(
    inputs: Sequence[str],
    tokenizer_path: Path,
    output: Path,
    settings: PrepareSettings,
    *,
    workers: int | None = None,
) -> PrepareResult:
    """Turn raw text into shards, or go on with what was begun in `output`.

    Args:
        inputs: files, folders, globs, `-`, or `python-docs:`.
        tokenizer_path: a tokenizer's folder or `vocab.txt`.
        output: the folder for the shards.
        settings: how to read, split and hold out.
        workers: processes; by default one for each core.

    Raises:
        ResumeError: `output` holds shards of other inputs, settings or tokenizer, or something else.
        InputError: nothing in the input can be used, or reading is strict and something is faulty.
        StoppedError: Ctrl-C or SIGTERM; the same call goes on.
        StorageError: the disk refused.
    """
    started = time.monotonic()
    sources = open_corpus(inputs, settings).sources
    tokenizer = Tokenizer.load(tokenizer_path)
    plan = describe_plan(sources, settings, tokenizer)
    is_finished = check_output(output, plan, settings)
    if not is_finished:
        write_beginning(output, plan, tokenizer)
        units = plan_units(sources)
        run_units(output, units, settings, workers or os.cpu_count() or 1)
        gather(output, len(units), settings, tokenizer)
    manifest = read_manifest(output)
    seconds = time.monotonic() - started
    return PrepareResult(
        manifest=manifest,
        was_done=is_finished,
        elapsed_seconds=seconds,
        bytes_per_second=manifest.raw_bytes / seconds,
        report=ReadReport.from_dict(manifest.report).summary_lines(),
    )


def plan_units(sources: Sequence[Source]) -> list[list[Source]]:
    """Bundle small files, in order, into units of about 16 MiB; larger ones stand alone."""
    units: list[list[Source]] = []
    size = 0
    for source in sources:
        if not units or source.size_bytes is None or size + source.size_bytes > UNIT_BYTES:
            units.append([])
            size = 0
        units[-1].append(source)
        size += UNIT_BYTES if source.size_bytes is None else source.size_bytes
    return units


def describe_plan(
    sources: Sequence[Source], settings: PrepareSettings, tokenizer: Tokenizer
) -> dict[str, Any]:
    """Everything that decides the output, to compare on resuming."""
    return {
        "settings": settings.model_dump(mode="json"),
        "tokenizer_fingerprint": tokenizer.fingerprint,
        "sources": [
            [source.name, source.size_bytes, source.path and source.path.stat().st_mtime_ns]
            for source in sources
        ],
    }


def check_output(output: Path, plan: dict[str, Any], settings: PrepareSettings) -> bool:
    """Whether `output` holds finished shards of this very plan.

    Raises:
        ResumeError: it holds those of another plan, or something else.
    """
    if not (output / PLAN).exists():
        if output.exists() and any(output.iterdir()):
            raise ResumeError(f"{output} holds something else; choose another --output")
        return False
    before = read_json(output / PLAN, limit_bytes=1 << 30)
    differences = list_differences(
        parse_settings(PrepareSettings, before.get("settings", {}), str(output / PLAN)), settings
    )
    if before.get("tokenizer_fingerprint") != plan["tokenizer_fingerprint"]:
        differences.append("another tokenizer")
    if before.get("sources") != plan["sources"] or any(
        size is None and name == "standard input" for name, size, _ in plan["sources"]
    ):
        differences.append("other input files, or files that changed since")
    if differences:
        raise ResumeError(
            f"{output} was begun with other settings ({'; '.join(differences)});"
            " use those again, or another --output"
        )
    return (output / MANIFEST).exists()


def write_beginning(output: Path, plan: dict[str, Any], tokenizer: Tokenizer) -> None:
    """Make the folders, and write the tokenizer and then the plan."""
    for folder in (SHARDS_FOLDER, UNITS_FOLDER, TOKENIZER_FOLDER):
        make_folder(output / folder)
    tokenizer.save(output / TOKENIZER_FOLDER)
    write_json(output / PLAN, plan)


def run_units(
    output: Path, units: list[list[Source]], settings: PrepareSettings, workers: int
) -> None:
    """Do all units that aren't done, showing progress.

    Raises:
        StoppedError: Ctrl-C or SIGTERM; finished units stay.
    """
    to_do = [number for number in range(len(units)) if read_unit(output, number) is None]
    sizes = [source.size_bytes for number in to_do for source in units[number]]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with show_progress("Preparing", total, is_bytes=True) as bar:
            # Standard input belongs to this process, and one unit needs no other.
            if workers == 1 or len(to_do) <= 1 or None in sizes:
                for number in to_do:
                    prepare_unit(output, number, units[number], settings, bar.advance)
            else:
                for count in _run_in_processes(output, units, to_do, settings, workers):
                    bar.advance(count)
    except KeyboardInterrupt:
        done = sum(read_unit(output, number) is not None for number in range(len(units)))
        raise StoppedError(
            f"stopped with {done} of {len(units)} parts done; the same command goes on"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_in_processes(
    output: Path,
    units: list[list[Source]],
    to_do: list[int],
    settings: PrepareSettings,
    workers: int,
) -> Iterator[int]:
    """Run units in a pool; yields how many bytes were read since the last time."""
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    executor = ProcessPoolExecutor(
        min(workers, len(to_do)), context, initializer=_start_worker, initargs=(counter,)
    )
    seen = 0
    try:
        pending = {
            executor.submit(_work, output, number, units[number], settings) for number in to_do
        }
        while pending:
            done, pending = wait(pending, POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            count = counter.value
            yield count - seen
            seen = count
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    executor.shutdown()


_counter: "Synchronized[int] | None" = None


def _start_worker(counter: "Synchronized[int]") -> None:
    """Leave Ctrl-C to the process that started this one."""
    global _counter  # noqa: PLW0603 - a worker's only way to reach what it was started with
    _counter = counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _work(output: Path, number: int, sources: list[Source], settings: PrepareSettings) -> None:
    prepare_unit(output, number, sources, settings, _advance)


def _advance(count: int) -> None:
    assert _counter is not None
    with _counter.get_lock():
        _counter.value += count


def read_unit(output: Path, number: int) -> UnitResult | None:
    """The result of a unit whose files are all there; None where it has to be done."""
    try:
        result = UnitResult.model_validate(read_json(unit_path(output, number, "json")))
        verify_file(unit_path(output, number, "npy"), result.token_counts)
        for shard in result.shards:
            for part, record in shard.files.items():
                verify_file(output / SHARDS_FOLDER / f"{shard.name}.{part}.npy", record)
    except (BertkitError, ValidationError):
        return None
    return result


def gather(output: Path, num_units: int, settings: PrepareSettings, tokenizer: Tokenizer) -> None:
    """Write the manifest over all units, and remove their notes.

    Raises:
        InputError: there is no training text at all.
    """
    results = []
    token_counts = np.zeros(tokenizer.vocab_size, dtype=np.uint64)
    for number in range(num_units):
        result = read_unit(output, number)
        assert result is not None, number
        results.append(result)
        token_counts += np.load(unit_path(output, number, "npy"), allow_pickle=False)
    shards = [shard for result in results for shard in result.shards]
    report = ReadReport()
    for result in results:
        report.merge(ReadReport.from_dict(result.report))
    counts = {
        split: sum((s.counts for s in shards if s.split == split), SplitCounts())
        for split in ("train", "held-out")
    }
    if not counts["train"].tokens:
        raise InputError(
            "the input has no text to train on"
            + "".join(f"; {line}" for line in report.summary_lines())
        )
    manifest = ShardsManifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_fingerprint=tokenizer.fingerprint,
        raw_bytes=sum(result.raw_bytes for result in results),
        train=counts["train"],
        held_out=counts["held-out"],
        settings=settings.model_dump(mode="json"),
        report=report.to_dict(),
        token_counts=write_array(output / TOKEN_COUNTS, token_counts),
        shards=shards,
    )
    write_json(output / MANIFEST, manifest.model_dump(mode="json"))
    remove_folder(output / UNITS_FOLDER)
