"""What all BERT models share: a config, an encoder, and the way from and to a checkpoint."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.names import list_heads
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.weights import fill_model, save_weights


class PretrainedBert(nn.Module):
    """Base of all models; each has an `encoder` and, by its kind, a `pooler` and heads.

    Args:
        config: the sizes.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls, path: str | Path, *, new_heads: bool = False, **changes: Any) -> Self:
        """Load a checkpoint; ready for evaluation, in float32.

        Args:
            path: a folder: a run of `bertkit pretrain`, or a checkpoint in any format of
                `bertkit.checkpoints.formats`.
            new_heads: draw initial weights for heads that the checkpoint lacks, from torch's
                default generator; without it they are an error.
            changes: keys of the config to be had otherwise, such as `hidden_dropout_prob`.

        Raises:
            MissingFileError: no model is there.
            CheckpointError: the config or tensors don't fit.
            DamagedFileError: a file was cut short or altered.
            UnsafeFileError: a file asks for what none may.
        """
        checkpoint = open_checkpoint(Path(path))
        config = BertConfig.from_dict({**checkpoint.config, **changes}, checkpoint.folder)
        with torch.device("meta"):
            model = cls._for_heads(config, list_heads(checkpoint.tensors))
        return fill_model(
            model,
            checkpoint,
            standard_deviation=config.initializer_range,
            new_heads=new_heads,
        )

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write `config.json` and `model.safetensors`; returns what was written, by file name.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: the disk refused.
        """
        return save_weights(self, self.config, Path(folder))

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        """The model for a checkpoint that has these heads."""
        return cls(config)
