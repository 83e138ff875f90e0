"""Convert a checkpoint of any format into a Hugging Face folder, atomically."""

from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import SettingsError
from bertkit.base.files import durable_folder
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import show_progress
from bertkit.batch_jobs.convert.settings import ConvertSettings
from bertkit.batch_jobs.convert.tokenizer import write_companions
from bertkit.batch_jobs.convert.weights import convert_weights, recast_modules
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import count_parameters
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel, read_sentence_model
from bertkit.models.bert.sentence_modules import describe_modules
from bertkit.tokenization.folder import read_max_length


@dataclass(frozen=True)
class ConvertResult:
    """The result of a conversion.

    Attributes:
        folder: the output folder.
        format: the source format, a key of `FORMATS`.
        architecture: the model's class.
        heads: the heads that were found and kept.
        num_parameters: of all parts; tied parameters count once.
        dtypes: number of written tensors by dtype.
        dropped: tensors of the source that are copies or not weights.
        notes: further remarks for the user.
        files: the written files, by name.
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
        """The total size of all files."""
        return sum(record.size_bytes for record in self.files.values())


def convert(
    source: str | Path,
    output: Path,
    settings: ConvertSettings = ConvertSettings(),  # noqa: B008
    *,
    revision: str | None = None,
) -> ConvertResult:
    """Convert a checkpoint; only one tensor at a time is in memory.

    Args:
        source: a folder of any format, a run, or the id of a model of the Hub.
        output: a new folder, written atomically.
        settings: the settings of the conversion.
        revision: a branch, tag or commit of a model of the Hub.

    Raises:
        SettingsError: `output` isn't empty or lies in the source, `max_shard_size` would make too
            many files, or `revision` is given for a folder.
        ResumeError: another process is converting into `output`.
        MissingFileError: there is no such model, or a file of it is missing.
        CheckpointError: config and tensors don't match, need features that bertkit's BERT lacks,
            aren't finite, or are too large for the dtype.
        DamagedFileError: a file was truncated, altered, or isn't in its format.
        UnsafeFileError: a file is unsafe to read.
        HubError: the Hub can't provide the model.
        StorageError: writing failed.
    """
    with open_output(output, "converting into", inputs=[source], check=check_output) as place:
        path = resolve_model(source, revision=revision)
        return _convert(path, open_checkpoint(path), place, settings)


def _convert(
    path: Path, checkpoint: Checkpoint, output: Path, settings: ConvertSettings
) -> ConvertResult:
    """Convert into a folder that the caller has locked."""
    dtype = None if settings.dtype is None else getattr(torch, settings.dtype)
    total = sum(tensor.nbytes for tensor in checkpoint.tensors.values())
    with show_progress("Converting", total, is_bytes=True) as progress:
        weights = convert_weights(checkpoint, dtype, progress)
        modules: SentenceModel | None
        if checkpoint.format == "sentence_transformers":
            modules = recast_modules(read_sentence_model(path), dtype, progress)
        else:
            length = read_max_length(checkpoint.folder) or weights.config.max_position_embeddings
            modules = describe_modules(weights.config, weights.tensors, length)
        with durable_folder(output) as folder:
            files = write_huggingface(
                folder, weights.describe(), weights.tensors, shard_bytes=settings.shard_bytes
            )
            companions, notes = write_companions(
                path, checkpoint.folder, folder, weights.config, modules
            )
            check_output(output)  # again, because files may have appeared meanwhile
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
        files=files | companions,
    )


def check_output(output: Path) -> None:
    """Raise SettingsError if the output folder isn't empty."""
    if names := list_names(output):
        raise SettingsError(f"{output} isn't empty ({min(names)} is there); name a new folder")
