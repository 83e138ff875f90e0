"""What all BERT models share: a config, an encoder, and the way from and to a checkpoint."""

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
    """Base of all models; each has an `encoder` and, by its kind, a `pooler` and heads.

    Args:
        config: the sizes.

    Attributes:
        new_heads: of a loaded model, what the checkpoint lacked: pooler or heads whose weights
            were drawn and still mean nothing.
    """

    may_be_causal: ClassVar[bool] = False  # whether it means something left to right

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
        """Load a checkpoint; ready for evaluation, in float32.

        Args:
            path: a run of `bertkit pretrain`, a checkpoint in any format of
                `bertkit.checkpoints.formats`, or the id of a model of the Hub.
            revision: a branch, tag or commit of a model of the Hub.
            new_heads: draw initial weights for heads that the checkpoint lacks, from torch's
                default generator, and list them in the model's `new_heads`; without it they are
                an error.
            changes: keys of the config to be had otherwise, such as `hidden_dropout_prob`;
                `id2label` or `num_labels` take the place of all that the checkpoint says of
                labels.

        Raises:
            SettingsError: the config has no key of that name, or `revision` is given for a path.
            MissingFileError: no model is there.
            HubError: the Hub doesn't give it.
            CheckpointError: the config or tensors don't fit.
            DamagedFileError: a file was cut short or altered.
            UnsafeFileError: a file asks for what none may.
        """
        _check_changes(changes)
        checkpoint = open_checkpoint(resolve_model(path, revision=revision))
        return cls.from_checkpoint(checkpoint, new_heads=new_heads, **changes)

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, *, new_heads: bool = False, **changes: Any
    ) -> Self:
        """Load a checkpoint that is open already; arguments and errors as in `from_pretrained`."""
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
        """Write `config.json` and `model.safetensors`; returns what was written, by file name.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: writing failed.
        """
        return save_weights(self, self.config.to_dict(), Path(folder))

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        """The model for a checkpoint that has these heads."""
        return cls(config)


def _check_changes(changes: dict[str, Any]) -> None:
    """Refuse what a config would only carry along, such as a misspelled key.

    Raises:
        SettingsError: the config has no key of that name.
    """
    known = {*BertConfig.model_fields, *LABEL_KEYS, FEATURE_HEAD}
    if unknown := sorted(changes.keys() - known):
        raise SettingsError(
            f"from_pretrained: {unknown[0]!r} is neither an argument nor a key of the config, of"
            f" which there are {', '.join(sorted(known))}"
        )
