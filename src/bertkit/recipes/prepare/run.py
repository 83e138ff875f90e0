"""Prepare a corpus: plan units of work, run them in parallel, write a manifest.

A unit is a pure function of its sources, the settings and the tokenizer, and writes files under its
own names. The output is therefore the same for any number of workers, and finished units aren't
repeated.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bertkit.base.checksums import FileRecord, verify_file, verify_size
from bertkit.base.errors import DamagedFileError, InputError, MissingFileError, SettingsError
from bertkit.base.extras import require_package
from bertkit.base.files import make_folder, remove_folder, remove_litter
from bertkit.base.output import list_names, open_output
from bertkit.base.parts import PartsSettings, WorkersSettings, count_cores, run_parts
from bertkit.base.progress import show_progress
from bertkit.base.signals import stop_at_once
from bertkit.base.transfers import uploads_output
from bertkit.data.documents import open_corpus
from bertkit.data.mapped_array import MappedArray
from bertkit.data.problems import (
    UNKNOWN_TEXT_ADVICE,
    ReadReport,
    check_unknown,
    describe_long_words,
)
from bertkit.data.shards import (
    MANIFEST,
    PARTS,
    PLAN,
    SHARDS_FOLDER,
    TOKEN_COUNTS,
    TOKENIZER_FOLDER,
    ShardsManifest,
    read_manifest,
    shard_path,
    sum_counts,
)
from bertkit.data.sources import CorpusInput, TextSource
from bertkit.data.writers import write_array
from bertkit.recipes.prepare.plan import (
    RESTART_ADVICE,
    PreparationPlan,
    check_folder,
    group_sources,
    hold_out_end,
    is_finished,
    list_changes,
    make_plan,
    reads_standard_input,
    remove_shards,
)
from bertkit.recipes.prepare.work_unit import (
    UNITS_FOLDER,
    PrepareUnit,
    UnitResult,
    read_unit,
    unit_path,
)
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.names import MANIFEST_FILE as TOKENIZER_MANIFEST
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class PrepareResult:
    """The result of `prepare`."""

    manifest: ShardsManifest
    was_done: bool  # whether the shards were finished before and nothing was written
    elapsed_seconds: float
    bytes_per_second: float  # UTF-8 bytes of raw text
    report: list[str]


@dataclass(frozen=True)
class Preparation:
    """What is to be done, before anything is written."""

    output: Path
    inputs: list[str]  # those that are named
    plan: PreparationPlan
    units: dict[int, list[TextSource]]
    tokenizer: Tokenizer

    @property
    def reads_standard_input(self) -> bool:
        """Whether one of the sources can't be read twice, and by this process alone."""
        return any(map(reads_standard_input, self.units.values()))

    def open(self, *, waits: bool) -> AbstractContextManager[Path]:
        """Lock the output."""
        return open_output(
            self.output,
            "preparing",
            inputs=self.inputs,
            check=check_folder,
            is_workplace=True,
            waits=waits,
        )

    def describe_stop(self) -> str:
        """Describe how much of a stopped run is done and how to resume it."""
        num_done = sum(unit_path(self.output, number, "json").exists() for number in self.units)
        advice = "run the same command to resume"
        if self.reads_standard_input:
            advice = RESTART_ADVICE
        return f"stopped with {num_done} of {len(self.units)} parts done; {advice}"


def plan_preparation(
    inputs: Sequence[CorpusInput],
    tokenizer_path: Path,
    output: Path,
    settings: PrepareSettings,
    *,
    held_out_inputs: Sequence[CorpusInput] = (),
) -> Preparation:
    """Find the sources and bundle them into units; arguments are those of `prepare`."""
    require_package("pyarrow", "preparing text")  # to tokenize each distinct word once
    if not settings.held_out and not held_out_inputs:
        raise SettingsError(
            "with --held-out 0 there is no text to evaluate pre-training on; give a share, or --dev"
        )
    if held_out_inputs and "held_out" not in settings.model_fields_set:
        settings = settings.model_copy(update={"held_out": 0.0})
    sources = open_corpus(inputs, settings, held_out_inputs).sources
    tokenizer = Tokenizer.load(tokenizer_path)
    return Preparation(
        output=output,
        inputs=[each for each in (*inputs, *held_out_inputs) if isinstance(each, str)],
        plan=make_plan(sources, settings, tokenizer.fingerprint),
        units=dict(enumerate(group_sources(sources))),
        tokenizer=tokenizer,
    )


@uploads_output()
def prepare(
    inputs: Sequence[CorpusInput],
    tokenizer_path: Path,
    output: Path,
    settings: PrepareSettings,
    *,
    held_out_inputs: Sequence[CorpusInput] = (),
    workers: WorkersSettings = WorkersSettings(),  # noqa: B008
    overwrite: bool = False,
    waits: bool = False,
) -> PrepareResult:
    """Turn raw text into shards, or resume an interrupted run in `output`.

    With several workers, a script must call this below `if __name__ == "__main__":`, because each
    worker imports the script. Files missing from finished shards are written again. A
    `StoppedError` comes from Ctrl-C, SIGTERM or a killed worker; its message says how to resume.

    Args:
        held_out_inputs: like `inputs`, for evaluation alone: all of their documents are held out,
            and of the others only if the settings name a share.
        overwrite: remove shards of other inputs or settings from `output` first.
        waits: whether to wait for another process that is preparing in `output`.
    """
    started = time.monotonic()
    work = plan_preparation(
        inputs, tokenizer_path, output, settings, held_out_inputs=held_out_inputs
    )
    with stop_at_once(work.describe_stop), work.open(waits=waits):
        if overwrite and list_changes(output, work.plan):
            remove_shards(output)
        was_done = is_finished(output, work.plan)
        prepared_bytes = 0 if was_done else write_shards(work, workers)
        remove_folder(output / UNITS_FOLDER)
        manifest = read_manifest(output)
        listed = {
            shard_path(output, shard.name, part).name for shard in manifest.shards for part in PARTS
        }
        for name in sorted(list_names(output / SHARDS_FOLDER) - listed):
            remove_folder(output / SHARDS_FOLDER / name)  # of a shard that `hold_out_end` replaced
        for folder in (output, output / SHARDS_FOLDER, output / TOKENIZER_FOLDER):
            remove_litter(folder)
    seconds = time.monotonic() - started
    return PrepareResult(
        manifest=manifest,
        was_done=was_done,
        elapsed_seconds=seconds,
        bytes_per_second=prepared_bytes / seconds,
        report=manifest.list_problems(),
    )


class ShareResult(NamedTuple):
    """The result of `prepare_share`."""

    num_units: int  # of all shares
    num_missing: int  # of these, not done yet by any process


def prepare_share(
    inputs: Sequence[CorpusInput],
    tokenizer_path: Path,
    output: Path,
    settings: PrepareSettings,
    parts: PartsSettings,
    *,
    held_out_inputs: Sequence[CorpusInput] = (),
) -> ShareResult:
    """Prepare the units of one share, beside processes that prepare the others.

    Once none is missing, `prepare` writes the manifest. The output is locked only while the plan is
    written, which must be the same for all of them.
    """
    work = plan_preparation(
        inputs, tokenizer_path, output, settings, held_out_inputs=held_out_inputs
    )
    if work.reads_standard_input:
        raise SettingsError("standard input can be read by one process only; leave out --shard")
    with stop_at_once(work.describe_stop):
        with work.open(waits=True):
            if is_finished(output, work.plan):
                return ShareResult(len(work.units), 0)
            if not (output / TOKENIZER_FOLDER / TOKENIZER_MANIFEST).exists():
                write_plan(output, work.plan, work.tokenizer)
        own = dict(list(work.units.items())[parts.share])
        run_units(work, find_unfinished(output, own, verify_file), parts)
    return ShareResult(len(work.units), len(find_unfinished(output, work.units, verify_size)))


def write_shards(work: Preparation, workers: WorkersSettings) -> int:
    """Run the unfinished units, write the manifest, and return the bytes of text prepared."""
    output, plan = work.output, work.plan
    is_new = not (output / MANIFEST).exists()
    try:
        tokenizer_manifest = write_plan(output, plan, work.tokenizer)
        to_do = find_unfinished(output, work.units, verify_file)
        run_units(work, to_do, workers)
        results = [read_unit(output, number, verify_size) for number in work.units]
        write_manifest(output, results, plan.settings, work.tokenizer, tokenizer_manifest)
    except InputError:  # the input can't be used: leave nothing behind
        if is_new:
            remove_shards(output)
        raise
    return sum(results[number].raw_bytes for number in to_do)


def write_plan(output: Path, plan: PreparationPlan, tokenizer: Tokenizer) -> FileRecord:
    """Write the plan first: a tokenizer folder without a plan belongs to someone else."""
    for folder in (SHARDS_FOLDER, UNITS_FOLDER):
        make_folder(output / folder)
    plan.save(output / PLAN)
    return tokenizer.save(output / TOKENIZER_FOLDER)[TOKENIZER_MANIFEST]


def find_unfinished(
    output: Path,
    units: Mapping[int, list[TextSource]],
    verify: Callable[[Path, FileRecord], None],
) -> dict[int, list[TextSource]]:
    """Return the units to run, by number: those with a missing or altered file."""
    unfinished = {}
    with show_progress("Checking finished parts", len(units)) as progress:
        for number, sources in units.items():
            try:
                read_unit(output, number, verify)
            except (MissingFileError, DamagedFileError):
                unfinished[number] = sources
            progress.advance(1)
    return unfinished


def run_units(
    work: Preparation, units: Mapping[int, list[TextSource]], workers: WorkersSettings
) -> None:
    """Run units and show progress."""
    sizes = [source.size_bytes for sources in units.values() for source in sources]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    default_workers = count_cores()
    if total is None:  # only this process can read standard input, or a pipe
        if workers.run_on != "local":
            raise SettingsError("standard input and pipes are read here; leave out --run-on")
        workers, default_workers = WorkersSettings(), 1
    is_share = isinstance(workers, PartsSettings) and workers.shard is not None
    job = PrepareUnit(work.output, work.plan.settings, is_share or workers.run_on != "local")
    with show_progress("Preparing", total, is_bytes=True) as progress:
        for _ in run_parts(
            job, list(units.items()), workers, progress.advance, default_workers=default_workers
        ):
            pass


def write_manifest(
    output: Path,
    results: Sequence[UnitResult],
    settings: PrepareSettings,
    tokenizer: Tokenizer,
    tokenizer_manifest: FileRecord,
) -> None:
    """Write the manifest over all units, which marks the shards as finished."""
    report = ReadReport()
    token_counts = np.zeros(tokenizer.vocab_size, dtype=np.uint64)
    for number, result in enumerate(results):
        report.merge(result.report)
        path = unit_path(output, number, "npy")
        token_counts += MappedArray(path, result.token_counts, tokenizer.vocab_size).read()
    report.check_decodable(settings.encoding, is_whole=True)
    shards = [shard for result in results for shard in result.shards]
    if not sum_counts(shards, "train").tokens:
        raise InputError("; ".join(["the input has no text to train on", *report.summary_lines()]))
    if not sum_counts(shards, "held-out").tokens:
        shards, held_out_counts = hold_out_end(output, shards, settings.held_out, report)
        token_counts[: len(held_out_counts)] -= held_out_counts
    train, num_unknown = sum_counts(shards, "train"), int(token_counts[tokenizer.unk_id])
    num_characters = sum(result.characters for result in results)
    num_in_long = sum(result.long_word_characters for result in results)
    advice = describe_long_words(num_in_long, num_characters) or [UNKNOWN_TEXT_ADVICE]
    check_unknown("the input", num_unknown, train.tokens, *advice)
    manifest = ShardsManifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_fingerprint=tokenizer.fingerprint,
        tokenizer_manifest=tokenizer_manifest,
        raw_bytes=sum(result.raw_bytes for result in results),
        characters=num_characters,
        long_word_characters=num_in_long,
        unknown_tokens=num_unknown,
        train=train,
        held_out=sum_counts(shards, "held-out"),
        settings=settings.model_dump(mode="json"),
        report=report,
        token_counts=write_array(output / TOKEN_COUNTS, token_counts),
        shards=shards,
    )
    manifest.save(output / MANIFEST)
