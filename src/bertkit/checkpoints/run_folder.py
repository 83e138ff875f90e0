"""A run's folder: its checkpoints, whole or absent, newest first, the oldest removed.

`run/settings.json` says what the run was begun with, `run/log.jsonl` has one event a line, and
`run/checkpoints/step-00001000/` is a Hugging Face folder with the optimizer and the run's state
beside the model, and a `manifest.json` with size and checksums of each file and of itself.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import FileRecord, verify_file
from bertkit.base.errors import DamagedFileError, MissingFileError, storage_errors
from bertkit.base.files import remove_folder
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.huggingface import WEIGHTS_FILE, open_huggingface

CHECKPOINTS = "checkpoints"
MANIFEST = "manifest.json"
STEP_PREFIX = "step-"
FILES_OF_OTHERS = ("modules.json", "bert_config.json")  # of which a run has none
MANIFEST_LIMIT_BYTES = 4 << 20  # 25 bytes for each mebibyte of a checkpoint


class CheckpointManifest(BaseModel):
    """What a checkpoint holds, file by file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format_version: Literal[2] = 2
    step: int
    files: dict[str, FileRecord]


def checkpoint_path(run: Path, step: int) -> Path:
    """Where the checkpoint after `step` steps is."""
    return run / CHECKPOINTS / f"{STEP_PREFIX}{step:08d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Checkpoints of a run, oldest first; unfinished and foreign names are passed over."""
    return sorted(path for path in (run / CHECKPOINTS).glob("*") if _has_step(path))


def seal_checkpoint(folder: Path, step: int, files: Mapping[str, FileRecord]) -> None:
    """Write the manifest of a checkpoint that is otherwise complete.

    Args:
        folder: the checkpoint's.
        step: after which it is.
        files: what was written, by file name; all that is in the folder.
    """
    manifest = CheckpointManifest(step=step, files=dict(files))
    write_checksummed_json(folder / MANIFEST, manifest.model_dump(mode="json"))


def verify_checkpoint(folder: Path, names: Collection[str] | None = None) -> CheckpointManifest:
    """Hold each file against the manifest, or only those of the given names."""
    path = folder / MANIFEST
    try:
        content = read_checksummed_json(path, limit_bytes=MANIFEST_LIMIT_BYTES)
        manifest = CheckpointManifest.model_validate(content)
    except ValidationError as error:
        raise DamagedFileError(
            f"{path} isn't a checkpoint's manifest: {describe_validation(error)}"
        ) from None
    for name, record in manifest.files.items():
        if Path(name).name != name:
            raise DamagedFileError(f"{path} names a file outside its folder: {name!r}")
        if names is None or name in names:
            verify_file(folder / name, record)
    return manifest


def rotate_checkpoints(run: Path, keep: int, *also: int | None) -> None:
    """Remove all but the newest `keep` checkpoints, and those after the steps `also`."""
    kept = {checkpoint_path(run, step) for step in also if step is not None}
    for path in list_checkpoints(run)[:-keep]:
        if path not in kept:
            remove_folder(path)


def is_run(path: Path) -> bool:
    """Whether a folder is a run, or one of its checkpoints; a run has no config of its own."""
    with storage_errors(path, "read"):
        if (path / CONFIG_FILE).is_file():
            return _is_checkpoint(path)
        is_anothers = any((path / name).exists() for name in FILES_OF_OTHERS)
        is_a_run = (path / CHECKPOINTS).is_dir() or (path / "settings.json").is_file()
        return is_a_run and not is_anothers


def open_run(path: Path) -> Checkpoint:
    """Open a run's newest checkpoint, or the checkpoint that is named."""
    folder = find_checkpoint(path, reading=(CONFIG_FILE, WEIGHTS_FILE))
    return replace(open_huggingface(folder), format="run_folder")


def find_checkpoint(path: Path, *, reading: Collection[str]) -> Path:
    """The folder of a run's newest checkpoint, or `path` itself where it is a model's.

    Args:
        path: a run, one of its checkpoints, or any model folder.
        reading: the files that will be read; they are verified where there is a manifest.
    """
    if not is_run(path):
        return path
    if _is_checkpoint(path):
        verify_checkpoint(path, reading)
        return path
    checkpoints = list_checkpoints(path)
    if not checkpoints:
        raise MissingFileError(
            f"the run {path} has no checkpoint yet; give the command that began it again"
        )
    verify_checkpoint(checkpoints[-1], reading)
    return checkpoints[-1]


def _is_checkpoint(path: Path) -> bool:
    """Whether a folder is a checkpoint with a manifest, or should be one."""
    is_model = (path / CONFIG_FILE).is_file()
    is_a_runs = path.parent.name == CHECKPOINTS and _has_step(path)
    return is_model and ((path / MANIFEST).is_file() or is_a_runs)


def _has_step(path: Path) -> bool:
    """Whether a folder has the name of a checkpoint."""
    return path.name.startswith(STEP_PREFIX) and path.name.removeprefix(STEP_PREFIX).isdigit()
