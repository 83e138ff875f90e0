"""All checkpoint formats, in the order in which they are tried, and `open_checkpoint`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import MissingFileError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.huggingface import is_huggingface, open_huggingface
from bertkit.checkpoints.run_folder import is_run, open_run
from bertkit.checkpoints.sentence_transformers.folder import (
    is_sentence_transformers,
    open_sentence_transformers,
)
from bertkit.checkpoints.tensorflow.checkpoint_reader import is_tensorflow, open_tensorflow


class Format(NamedTuple):
    """The functions that detect and open a format."""

    is_here: Callable[[Path], bool]
    open: Callable[[Path], Checkpoint]


FORMATS = {
    "run_folder": Format(is_run, open_run),
    "sentence_transformers": Format(is_sentence_transformers, open_sentence_transformers),
    "huggingface": Format(is_huggingface, open_huggingface),
    "tensorflow": Format(is_tensorflow, open_tensorflow),
}


def open_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint's config and the headers of its weights, in any known format.

    Args:
        path: a folder, or for TensorFlow the common prefix of the checkpoint's files.

    Raises:
        MissingFileError: there is no model, or one of its files is missing.
        CheckpointError: tensor names conflict.
        DamagedFileError: a file is truncated, altered or not in its format.
        UnsafeFileError: a file exceeds a limit or asks for something forbidden.
        StorageError: a file can't be read.
    """
    for format_ in FORMATS.values():
        if format_.is_here(path):
            return format_.open(path)
    what = "is a file; name its folder" if path.is_file() else "doesn't exist"
    if path.is_dir():
        what = "is no model folder"
    raise MissingFileError(
        f"{path} {what}; expected a run of `bertkit pretrain`, a folder with config.json and"
        " model.safetensors or pytorch_model.bin, or a TensorFlow checkpoint with bert_config.json"
    )
