"""Run folders: checkpoints are complete or absent; opens the newest and removes the oldest.

`run/settings.json` holds the settings that the run was started with, `run/log.jsonl` one event per
line. `run/checkpoints/step-00001000/` is a Hugging Face folder plus the optimizer and run state,
and a `manifest.json` with the size and checksums of each file and a checksum of itself.
`metrics.json`, beside `run/` and the model, marks a run as finished.
"""

import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord, record_file, verify_file
from bertkit.base.errors import BertkitError, DamagedFileError, MissingFileError, storage_errors
from bertkit.base.files import remove_folder
from bertkit.base.members import find_member, has_member
from bertkit.base.progress import announce
from bertkit.checkpoints.file_names import (
    ADAPTED_FILE,
    ADAPTER_CONFIG_FILE,
    ADAPTER_SAFETENSORS_FILE,
    CONFIG_FILE,
    SAFETENSORS_FILE,
)

if TYPE_CHECKING:
    from bertkit.checkpoints.checkpoint import Checkpoint

CHECKPOINTS = "checkpoints"
RUN_FOLDER = "run"  # the run in a result's folder, where that has more than the run
MANIFEST = "manifest.json"
METRICS_FILE = "metrics.json"  # beside a finished run
STEP_PREFIX = "step-"
STEP_IN_NAME = re.compile(rf"(^|.*/)(?P<folder>\w+)/{STEP_PREFIX}(?P<number>[0-9]+)/")
OPTIMIZER_FILE = "optimizer.safetensors"
CONFIGS = (CONFIG_FILE, ADAPTED_FILE)  # of which a checkpoint has one
# Files that a run never has.
FILES_OF_OTHERS = ("modules.json", "bert_config.json", ADAPTER_CONFIG_FILE)
FILES_OF_MODELS = (CONFIG_FILE, *FILES_OF_OTHERS)


class CheckpointManifest(ChecksummedModel):
    """The manifest of a checkpoint: its step, and size and checksums of each file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    description: ClassVar[str] = "a checkpoint's manifest"
    limit_bytes: ClassVar[int] = 4 << 20  # 25 bytes for each MiB of a checkpoint

    format_version: Literal[2] = 2
    step: int
    files: dict[str, FileRecord]


# A number that isn't defined is null in a file, and NaN here.
SavedNumber = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(lambda value: math.nan if value is None else value),
    PlainSerializer(lambda value: float(value) if math.isfinite(value) else None),
]


class FinishedRecord(ChecksummedModel):
    """What `metrics.json` holds of every trained model; undefined numbers are null."""

    description: ClassVar[str] = "the metrics of a finished run"

    format_version: Literal[1] = 1
    warnings: tuple[str, ...]
    num_steps: int
    best_step: int  # of the best checkpoint, even if the model is a mean of several
    has_ended_early: bool
    files: dict[str, str] = Field(default_factory=dict)  # SHA-256 by name

    @classmethod
    def read(cls, output: Path) -> Self:
        """Read a folder's `metrics.json`."""
        return cls.load(output / METRICS_FILE)

    def write(self, output: Path) -> None:
        """Write `metrics.json`, the last file of a run, which marks it as finished."""
        self.save(output / METRICS_FILE)

    def check_files(self, output: Path) -> None:
        """Verify the checksums of the model's files."""
        cure = f"restore it, or remove {output / METRICS_FILE} to train again"
        for name, sha256 in self.files.items():
            if not (output / name).exists():
                raise MissingFileError(f"{output / name} is missing; {cure}")
            if record_file(find_member(output, name)).sha256 != sha256:
                raise DamagedFileError(f"{output / name} isn't what was written; {cure}")


class SavedMetrics(FinishedRecord):
    """The metrics in any `metrics.json`, without the rest of it."""

    model_config = ConfigDict(extra="ignore")

    metrics: dict[str, SavedNumber]


def checkpoint_path(run: Path, step: int) -> Path:
    """Return the path of the checkpoint after `step` steps."""
    return run / CHECKPOINTS / f"{STEP_PREFIX}{step:08d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Return a run's checkpoints, oldest first, ignoring unfinished ones and other names."""
    return sorted(path for path in (run / CHECKPOINTS).glob("*") if _has_step(path))


def seal_checkpoint(folder: Path, step: int, files: Mapping[str, FileRecord]) -> None:
    """Write the manifest of a checkpoint whose other files are complete."""
    CheckpointManifest(step=step, files=dict(files)).save(folder / MANIFEST)


def verify_checkpoint(folder: Path, names: Collection[str] | None = None) -> CheckpointManifest:
    """Verify the files against the manifest, or only those with the given names and of modules."""
    path = folder / MANIFEST
    manifest = CheckpointManifest.load(path)
    for name, record in manifest.files.items():
        inner = PurePosixPath(name)  # some are in a folder of their own, such as a module's
        if inner.is_absolute() or {"..", "\\"} & {*inner.parts, *name}:
            raise DamagedFileError(f"{path} names a file outside its folder: {name!r}")
        if names is None or name in names or len(inner.parts) > 1:
            verify_file(folder / name, record)
    return manifest


def rotate_checkpoints(run: Path, keep: int, *also: int | None) -> None:
    """Remove old checkpoints, except the newest `keep` and those of the steps in `also`."""
    kept = {checkpoint_path(run, step) for step in also if step is not None}
    for path in list_checkpoints(run)[:-keep]:
        if path not in kept:
            remove_folder(path)


def choose_model_files(names: Collection[str]) -> list[str]:
    """Return a run's files that a model is opened from: no older checkpoints and no optimizer.

    A checkpoint without its manifest is still being uploaded.
    """
    steps = {name: STEP_IN_NAME.match(name) for name in names}
    newest = max(
        (
            step["number"]
            for step in steps.values()
            if step and step["folder"] == CHECKPOINTS and f"{step[0]}{MANIFEST}" in steps
        ),
        default="",
    )
    return [
        name
        for name, step in steps.items()
        if step is None
        or (
            (step["folder"] == CHECKPOINTS and step["number"] == newest)
            and not name.endswith(OPTIMIZER_FILE)
        )
    ]


def is_run(path: Path) -> bool:
    """Whether a folder is a run or one of its checkpoints; a run has no config of its own."""
    with storage_errors(path, "read"):
        if any((path / name).is_file() for name in CONFIGS):
            return _is_checkpoint(path)
        is_anothers = any((path / name).exists() for name in FILES_OF_OTHERS)
        is_a_run = (path / CHECKPOINTS).is_dir() or (path / "settings.json").is_file()
        return is_a_run and not is_anothers


def find_run(path: Path) -> Path:
    """Return the run in a result's folder, or `path` if it is a run or a model itself.

    `bertkit.pretrain` of texts and `bertkit demo` write the run beside its tokenizer and shards.
    """
    with storage_errors(path, "read"):
        if not path.is_dir() or any((path / name).exists() for name in FILES_OF_MODELS):
            return path
    return path / RUN_FOLDER if not is_run(path) and is_run(path / RUN_FOLDER) else path


def is_model_folder(name: str) -> bool:
    """Whether it names a folder with a model or a run."""
    path = Path(name)
    with suppress(OSError, ValueError, BertkitError):  # such as a text, longer than names may be
        return is_run(path) or any((path / file).is_file() for file in FILES_OF_MODELS)
    return False


def open_run(path: Path) -> "Checkpoint":
    """Open a run's newest checkpoint, or the given checkpoint."""
    from bertkit.checkpoints.peft import open_folder  # numpy, to read weights

    adapter = (ADAPTED_FILE, ADAPTER_CONFIG_FILE, ADAPTER_SAFETENSORS_FILE)
    folder = find_checkpoint(path, reading=(CONFIG_FILE, SAFETENSORS_FILE, *adapter))
    return replace(open_folder(folder), format="run_folder")


def find_checkpoint(path: Path, *, reading: Collection[str]) -> Path:
    """Return the folder of a run's newest checkpoint, or `path` if it is a model folder.

    The files in `reading` are verified if there is a manifest.
    """
    if not is_run(path):
        return path
    if _is_checkpoint(path):
        verify_checkpoint(path, reading)
        return path
    checkpoints = list_checkpoints(path)
    if not checkpoints:
        raise MissingFileError(
            f"the run {path} has no checkpoint yet; run the command that started it again"
        )
    verify_checkpoint(checkpoints[-1], reading)
    return checkpoints[-1]


def _is_checkpoint(path: Path) -> bool:
    """Whether a folder is a checkpoint: a model with a manifest, or in a run under a step name."""
    is_model = any((path / name).is_file() for name in CONFIGS)
    is_a_runs = path.parent.name == CHECKPOINTS and _has_step(path)
    return is_model and ((path / MANIFEST).is_file() or is_a_runs)


def _has_step(path: Path) -> bool:
    """Whether a folder's name is `step-` and a number."""
    return path.name.startswith(STEP_PREFIX) and path.name.removeprefix(STEP_PREFIX).isdigit()


def read_metrics(folder: Path) -> dict[str, float]:
    """Return the held-out metrics of a model's folder; empty if no recipe recorded any.

    A damaged record, or one of another tool, is announced: the model can be used without it.
    """
    if not has_member(folder, METRICS_FILE):
        return {}
    try:
        return SavedMetrics.load(find_member(folder, METRICS_FILE)).metrics
    except BertkitError as error:
        announce(f"the model's metrics are left out: {error}")
        return {}
