"""The base class of all BERT models: a config, an encoder, loading and saving."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub.resolve import resolve_model
from bertkit.checkpoints.names import list_heads
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.labels import LABEL_KEYS, without_replaced_labels
from bertkit.models.bert.weights import fill_model, save_weights, without_memory


class PretrainedBert(nn.Module):
    """Base of all BERT models; a subclass has an `encoder` and may have a `pooler` and heads.

    Args:
        config: the sizes.

    Attributes:
        new_heads: the heads, or the pooler, that a loaded checkpoint lacked: randomly initialized
            and not yet trained.
    """

    may_be_causal: ClassVar[bool] = False  # whether it accepts `is_decoder`

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.new_heads: tuple[str, ...] = ()

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path,
        *,
        revision: str | None = None,
        new_heads: bool = False,
        **changes: Any,
    ) -> Self:
        """Load a checkpoint in float32, in evaluation mode.

        Args:
            path: a run of `bertkit pretrain`, a checkpoint in any format of
                `bertkit.checkpoints.formats`, or the id of a model on the Hub.
            revision: a branch, tag or commit of a model on the Hub.
            new_heads: initialize heads that the checkpoint lacks, from torch's default generator,
                and list them in the model's `new_heads`; if False, a missing head is an error.
            changes: config keys to override, such as `hidden_dropout_prob`; `id2label` or
                `num_labels` replace all label keys of the checkpoint.

        Raises:
            SettingsError: the config has no key of that name, or `revision` is given for a path.
            MissingFileError: there is no model at the path.
            HubError: the model can't be downloaded from the Hub.
            CheckpointError: the config or tensors don't fit.
            DamagedFileError: a file is truncated or altered.
            UnsafeFileError: a file would run code, leave its folder or use unbounded memory.
        """
        _check_changes(changes)
        checkpoint = open_checkpoint(resolve_model(path, revision=revision))
        return cls.from_checkpoint(checkpoint, new_heads=new_heads, **changes)

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, *, new_heads: bool = False, **changes: Any
    ) -> Self:
        """Load an open checkpoint; arguments and errors as in `from_pretrained`."""
        _check_changes(changes)
        values = {**without_replaced_labels(checkpoint.config, changes), **changes}
        config = BertConfig.from_dict(values, checkpoint.folder)
        if config.is_decoder and not cls.may_be_causal:
            raise CheckpointError(
                f"{checkpoint.folder} reads left to right (is_decoder), and {cls.__name__} reads"
                " both ways; `bertkit generate` goes on with texts, `bertkit finetune` makes it a"
                " model for a task"
            )
        try:
            with without_memory():
                model = cls._for_heads(config, list_heads(checkpoint.tensors))
        except SettingsError as error:
            raise CheckpointError(f"{checkpoint.folder}: {error}") from None
        model.new_heads = fill_model(
            model,
            checkpoint,
            standard_deviation=config.initializer_range,
            new_heads=new_heads,
        )
        return model.eval()

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write `config.json` and `model.safetensors`; return their records by file name.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: writing failed.
        """
        return save_weights(self, self.config.to_dict(), Path(folder))

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        """Build the model for a checkpoint that has these heads."""
        return cls(config)


def _check_changes(changes: dict[str, Any]) -> None:
    """Refuse unknown keys, such as misspelled ones, which a config would silently keep.

    Raises:
        SettingsError: the config has no key of that name.
    """
    known = {*BertConfig.model_fields, *LABEL_KEYS, FEATURE_HEAD}
    if unknown := sorted(changes.keys() - known):
        raise SettingsError(
            f"from_pretrained: {unknown[0]!r} is neither an argument nor a key of the config, of"
            f" which there are {', '.join(sorted(known))}"
        )
