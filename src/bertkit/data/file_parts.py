"""A command that reads one file and writes one, over many files: a job whose parts are files.

Beside the outputs, a folder `.made` has a record of each: what it was made of and with. So a rerun
makes only what is missing, also where a file was corrected or is new, and other work is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple, Protocol

from pydantic import Field, JsonValue

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import (
    BertkitError,
    DamagedFileError,
    InputError,
    MissingFileError,
    ResumeError,
    SettingsError,
    StoppedError,
    pluralize,
)
from bertkit.base.files import make_folder
from bertkit.base.output import open_output
from bertkit.base.parts import PARALLEL, Advance, PartsSettings, run_parts
from bertkit.base.progress import announce, hidden_progress, show_progress
from bertkit.base.settings import Settings, in_panel, list_flag_differences
from bertkit.base.signals import stop_at_once
from bertkit.base.transfers import RECORDS
from bertkit.data.input_files import NOT_TEXT, STANDARD_INPUT, find_extension, find_files, look_at
from bertkit.data.problems import check_unknown, describe_unknown, is_unknown
from bertkit.data.tables.formats import EXTENSIONS

OUTPUT_EXTENSIONS = (".csv", ".jsonl", ".npy", ".parquet", ".tsv")  # of files that commands write
IGNORED_SETTINGS = {"revision", "overwrite"}


@in_panel(*PARALLEL)
class FilesSettings(PartsSettings):
    """How a command works on many files."""

    output_format: str | None = Field(
        default=None,
        description="Where --output is a folder: extension of its files, such as parquet, of those"
        " that --output may have.",
    )


def is_folder(output: Path | None) -> bool:
    """Whether an output is a folder, for one file per input: it has no extension, or is one."""
    if output is None or output.suffix in OUTPUT_EXTENSIONS:
        return False
    return not output.suffix or output.is_dir()


def check_is_single(settings: PartsSettings) -> None:
    """Refuse settings that only many files have."""
    if settings != type(settings)():
        flags = ", ".join(
            f"--{name.replace('_', '-')}" for name in sorted(settings.model_fields_set)
        )
        raise SettingsError(f"{flags} needs a folder as --output, with a file for each input")


class FilePart(NamedTuple):
    """An input file."""

    name: str  # of its output, without the format's extension, relative to the output folder
    source: str
    size_bytes: int
    version: str  # another one means another content


class OneFile(Protocol):
    """A command on one file; it writes the output whole or not at all."""

    def __call__(self, source: str, output: Path, *, overwrite: bool) -> dict[str, int]:
        """Write the output and return counts; `overwrite` also drops unfinished other work."""


@dataclass(frozen=True)
class OneOfMany:
    """A function that writes what it makes of a file of texts, as a command on one file."""

    run: Callable[..., Any]  # of model, source, output and settings; its result has `counts`
    find: Callable[[], Any]  # finds the model
    settings: Settings

    @cached_property
    def model(self) -> Any:
        """The model, which each process finds once."""
        return self.find()

    def __call__(self, source: str, output: Path, *, overwrite: bool) -> dict[str, int]:
        """Write the output and return counts."""
        chosen = self.settings.model_copy(update={"overwrite": overwrite})
        return asdict(self.run(self.model, source, output, chosen, is_one_of_many=True).counts)


class MadeFile(ChecksummedModel):
    """The record of an output, written before it with `is_done` false."""

    description: ClassVar[str] = "a record of an output of many"

    made_with: dict[str, JsonValue]
    source: str
    version: str
    is_done: bool = False


class FileOutcome(NamedTuple):
    """The result of one file."""

    counts: dict[str, int]
    error: BertkitError | None = None


@dataclass(frozen=True)
class FilesJob:
    """The job whose parts are files; an error of one doesn't end the others."""

    run: OneFile
    output: Path
    suffix: str  # of outputs, with its dot
    made_with: dict[str, JsonValue]  # the command and its settings, by name
    overwrite: bool = False
    num_gpus: int = 0

    @property
    def witness(self) -> Path:
        """The folder of records."""
        return self.output / RECORDS

    def __call__(self, part: FilePart, advance: Advance) -> FileOutcome:
        """Make one output."""
        try:
            with hidden_progress():
                return FileOutcome(self._make(part))
        except StoppedError:
            raise
        except BertkitError as error:
            return FileOutcome({}, error)
        finally:
            advance(part.size_bytes)

    def is_done(self, part: FilePart) -> bool:
        """Whether the output is there, of the same content and settings."""
        is_same = self._find_record(part) == self._describe(part, is_done=True)
        return is_same and self._place(part).exists()

    def _make(self, part: FilePart) -> dict[str, int]:
        place, record = self._place(part), self._place(part, RECORDS, ".json")
        found, wanted = self._find_record(part), self._describe(part)
        if place.exists() and not self.overwrite:
            advice = "name another --output, or replace it by --overwrite"
            if found is None:
                raise ResumeError(f"{place} exists and isn't of this command; {advice}")
            if differences := list_flag_differences(found.made_with, wanted.made_with):
                shown = "; ".join(differences)
                raise ResumeError(f"{place} was made with other settings ({shown}); {advice}")
        make_folder(record.parent)
        wanted.save(record)
        counts = self.run(part.source, place, overwrite=self.overwrite or found is not None)
        self._describe(part, is_done=True).save(record)
        return counts

    def _place(self, part: FilePart, folder: str = "", ending: str = "") -> Path:
        return self.output / folder / f"{part.name}{self.suffix}{ending}"

    def _find_record(self, part: FilePart) -> MadeFile | None:
        with suppress(MissingFileError, DamagedFileError):
            return MadeFile.load(self._place(part, RECORDS, ".json"))
        return None

    def _describe(self, part: FilePart, *, is_done: bool = False) -> MadeFile:
        return MadeFile(
            made_with=self.made_with, source=part.name, version=part.version, is_done=is_done
        )


@dataclass
class FilesResult:
    """The result of a command over many files."""

    output: Path
    num_files: int  # of all shares
    num_missing: int = 0  # of these, for other shards to make
    num_made: int = 0  # by this call
    counts: dict[str, int] = field(default_factory=dict)  # of those made by this call, summed


def run_over_files(job: FilesJob, inputs: Sequence[str], settings: FilesSettings) -> FilesResult:
    """Make the missing outputs of files, folders and globs, those of this shard.

    Raises:
        BertkitError: files failed; the error is the first one's, and the others are made. Or no
            word of those that were made is in the vocabulary.
    """
    parts = list_files(inputs)
    own, is_share = parts[settings.share], settings.shard is not None

    def describe_stop() -> str:
        num_done = sum(map(job.is_done, own))
        return f"stopped with {num_done} of {len(own)} files done; the same command resumes"

    result, errors = FilesResult(job.output, len(parts)), list[BertkitError]()
    lock = open_output(job.output, "writing into", inputs=inputs, is_workplace=True, waits=is_share)
    with stop_at_once(describe_stop), ExitStack() as stack:
        stack.enter_context(lock)
        make_folder(job.witness)
        if is_share:
            stack.close()  # others work beside this process, and each output has its own lock
        to_do = [part for part in own if not job.is_done(part)]
        total = sum(part.size_bytes for part in to_do)
        with show_progress(f"{len(to_do):,} files", total, is_bytes=True) as progress:
            for number, outcome in run_parts(job, to_do, settings, progress.advance):
                _add(result, to_do[number], outcome, errors)
        result.num_missing = sum(not job.is_done(part) for part in parts)
    if errors:
        failed = f"{len(errors):,} of {pluralize(len(own), 'file')} failed"
        error = type(errors[0])(f"{errors[0]} ({failed}; the same command makes what is missing)")
        error.has_finished_parts = any(map(job.is_done, own))
        raise error
    if result.num_made:
        check_unknown(" ".join(inputs), *_count_unknown(result.counts))
    return result


def _count_unknown(counts: Mapping[str, int]) -> tuple[int, int]:
    """Return how many tokens are [UNK], and of how many."""
    return counts.get("unknown_tokens", 0), counts.get("text_tokens", 0)


def _add(
    result: FilesResult, part: FilePart, outcome: FileOutcome, errors: list[BertkitError]
) -> None:
    if outcome.error is not None:
        text = str(outcome.error)
        named = text if part.source in text else f"{part.source}: {text}"
        errors.append(type(outcome.error)(named))
        announce(named)
        return
    if is_unknown(*(unknown := _count_unknown(outcome.counts))):
        announce(f"{part.source}: {describe_unknown(*unknown)[0]}")
    result.num_made += 1
    for name, count in outcome.counts.items():
        if count:
            result.counts[name] = result.counts.get(name, 0) + count


def list_files(inputs: Sequence[str]) -> list[FilePart]:
    """List the files of inputs, each with the name of its output.

    Raises:
        SettingsError: two would have the same output, or one is no regular file.
    """
    found: dict[str, FilePart] = {}
    for argument in inputs:
        if argument == STANDARD_INPUT:
            raise SettingsError("standard input has no name for its output; name a file: --output")
        for path, shown in find_files(argument):
            extension = find_extension(path)
            if str(path) != argument and extension in NOT_TEXT and extension not in EXTENSIONS:
                announce(f"left out: {path} isn't text: {NOT_TEXT[extension]}")
                continue
            name = str(PurePosixPath(*PurePosixPath(shown).parts[1:]))  # without the input's folder
            state = look_at(path)
            if state.size_bytes is None and isinstance(path, Path):
                raise SettingsError(
                    f"{path} is a pipe or a device; name it alone, with a file to write"
                )
            version = f"{state.size_bytes} {state.changed}"
            part = FilePart(name, str(path), state.size_bytes or 0, version)
            other = found.setdefault(name, part)
            if other.source != part.source:
                raise SettingsError(
                    f"{other.source} and {part.source} would have the same output, {name}; name a"
                    " folder that has both, or run the command once for each"
                )
    if not found:
        raise InputError(f"{' '.join(inputs)} has no file of texts")
    return list(found.values())


def make_files(
    run: OneFile,
    inputs: Sequence[str],
    output: Path,
    files: FilesSettings,
    suffixes: Sequence[str],
    made_with: Mapping[str, JsonValue],
    *settings: Settings,
    **more: JsonValue,
) -> FilesResult:
    """Run a command of a model over files, those whose output is missing.

    Args:
        suffixes: the extension of outputs by default, then all that are possible, with dots.
        made_with: the command and its model; its settings follow, and `more`.
    """
    chosen = {name: value for one in settings for name, value in one}
    work = {
        name: value
        for one in settings
        for name, value in one.model_dump(mode="json", exclude=IGNORED_SETTINGS).items()
    }
    default, *known = suffixes
    suffix = f".{(files.output_format or default).lstrip('.').lower()}"
    if suffix not in known:
        names = ", ".join(name.lstrip(".") for name in known)
        raise SettingsError(f"--output-format must be one of {names}, got {suffix[1:]}")
    job = FilesJob(
        run,
        output,
        suffix,
        {**made_with, **work, **more},
        overwrite=chosen["overwrite"],
        num_gpus=int(chosen["device"] != "cpu"),
    )
    return run_over_files(job, inputs, files)
