"""Convert a checkpoint of any format into a Hugging Face folder, whole or not at all."""

from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import SettingsError
from bertkit.base.files import durable_folder
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import show_progress
from bertkit.batch_jobs.convert.settings import ConvertSettings
from bertkit.batch_jobs.convert.tokenizer import copy_files, write_tokenizer
from bertkit.batch_jobs.convert.weights import ConvertedWeights, convert_weights, recast_modules
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub.resolve import resolve_model
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import count_parameters
from bertkit.checkpoints.sentence_transformers.folder import (
    read_sentence_model,
    write_sentence_model,
)


@dataclass(frozen=True)
class ConvertResult:
    """What was converted.

    Attributes:
        folder: what was written.
        format: what it was read from, a key of `FORMATS`.
        architecture: the model's class.
        heads: those that were found and kept.
        num_parameters: of all parts; tied ones count once.
        dtypes: of the weights written, and how many tensors are of each.
        dropped: tensors of the source that are copies or no weights.
        notes: what else a user should know.
        files: what was written, by file name.
    """

    folder: Path
    format: str
    architecture: str
    heads: tuple[str, ...]
    num_parameters: int
    dtypes: dict[str, int]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    files: dict[str, FileRecord]

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(record.size_bytes for record in self.files.values())


def convert(
    source: str | Path,
    output: Path,
    settings: ConvertSettings = ConvertSettings(),  # noqa: B008
    *,
    revision: str | None = None,
) -> ConvertResult:
    """Convert a checkpoint; weights go through memory a tensor at a time.

    Args:
        source: a folder of any format, a run, or the id of a model of the Hub.
        output: a new folder; it appears whole, or not at all.
        settings: what can be chosen.
        revision: a branch, tag or commit of a model of the Hub.

    Raises:
        SettingsError: `output` holds something or lies in the source, `max_shard_size` would make
            too many files, or `revision` is given for a folder.
        ResumeError: another process is converting into `output`.
        MissingFileError: there is no such model, or a file of it is missing.
        CheckpointError: config and tensors don't fit, mean what bertkit's BERT doesn't do, aren't
            finite, or too large for the type.
        DamagedFileError: a file was cut short, altered, or isn't of its format.
        UnsafeFileError: a file asks for what none may.
        HubError: the Hub doesn't give it.
        StorageError: writing failed.
    """
    with open_output(output, "converting into", inputs=[source], check=check_output) as place:
        path = resolve_model(source, revision=revision)
        return _convert(path, open_checkpoint(path), place, settings)


def _convert(
    path: Path, checkpoint: Checkpoint, output: Path, settings: ConvertSettings
) -> ConvertResult:
    """Convert into a folder that no other process is converting into."""
    dtype = None if settings.dtype is None else getattr(torch, settings.dtype)
    total = sum(tensor.nbytes for tensor in checkpoint.tensors.values())
    with show_progress("Converting", total, is_bytes=True) as progress:
        weights = convert_weights(checkpoint, dtype, progress)
        modules = None
        if checkpoint.format == "sentence_transformers":
            modules = recast_modules(read_sentence_model(path), dtype, progress)
        with durable_folder(output) as folder:
            files = write_huggingface(
                folder, weights.describe(), weights.tensors, shard_bytes=settings.shard_bytes
            )
            if modules is not None:
                files |= write_sentence_model(folder, modules) | copy_files(path, folder)
            tokenizer = write_tokenizer(checkpoint.folder, folder, weights.config)
            files |= tokenizer.files | copy_files(checkpoint.folder, folder)
            check_output(output)  # something may have come meanwhile, or been put back
    return describe(output, checkpoint, weights, files, tokenizer.notes)


def check_output(output: Path) -> None:
    """Refuse an output folder in which something would be lost."""
    if names := list_names(output):
        raise SettingsError(f"{output} isn't empty ({min(names)} is there); name a new folder")


def describe(
    output: Path,
    checkpoint: Checkpoint,
    weights: ConvertedWeights,
    files: dict[str, FileRecord],
    notes: tuple[str, ...],
) -> ConvertResult:
    """What was converted, for people and for programs."""
    shapes = {name: tensor.shape for name, tensor in weights.tensors.items()}
    dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in weights.tensors.values()]
    return ConvertResult(
        folder=output,
        format=checkpoint.format,
        architecture=weights.architecture,
        heads=weights.heads,
        num_parameters=sum(count_parameters(shapes).values()),
        dtypes={name: dtypes.count(name) for name in sorted(set(dtypes))},
        dropped=weights.dropped,
        notes=notes,
        files=files,
    )
