"""The base class of all BERT models: a config, an encoder, loading and saving."""

import copy
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Shaped
from torch import Tensor, nn

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.checkpoints.peft import AdapterOrigin
from bertkit.models.bert.adapter import fill_adapter, save_adapter
from bertkit.models.bert.architectures import check_class, check_config
from bertkit.models.bert.config import CROSS_ENCODER, FEATURE_HEAD, BertConfig
from bertkit.models.bert.labels import LABEL_KEYS
from bertkit.models.bert.weights import fill_model, save_weights, without_memory
from bertkit.nn.packing import COMPUTING, PackedBatch

if TYPE_CHECKING:
    from bertkit.models.bert.encoder import BertEncoder
    from bertkit.models.open_model import OpenModel

PaddingMask: TypeAlias = Bool[Tensor, "batch length"]  # True at tokens


class PretrainedBert(nn.Module):
    """Base of all BERT models; a subclass has an `encoder` and may have a `pooler` and heads.

    `new_heads` names those that a loaded checkpoint lacked: randomly initialized and not yet
    trained.
    """

    encoder: "BertEncoder"

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        check_config(config, type(self).__name__)
        self.config = config
        self.adapter_origin: AdapterOrigin | None = None  # of a model that is trained with LoRA
        self.new_heads: tuple[str, ...] = ()

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"] | None = None,
        attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> Any:
        """Compute the model's output for a padded batch.

        Args:
            input_ids: token ids.
            token_type_ids: 0 for segment A (the default), 1 for B.
            attention_mask: 0 or False at padding; by default, there is none.

        Raises:
            InputError: shapes differ, an id is out of range, or a row has no token.
        """
        batch, mask = pack_padded(self.config, input_ids, token_type_ids, attention_mask)
        return self.forward_packed(batch, mask)

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> Any:
        """Compute the output of `forward` from a packed batch; `mask` is True at its tokens."""
        raise NotImplementedError

    @classmethod
    def from_pretrained(
        cls,
        path: "str | Path | OpenModel",
        *,
        revision: str | None = None,
        new_heads: bool = False,
        **changes: Any,
    ) -> Self:
        """Load a checkpoint in float32, in evaluation mode.

        Args:
            path: a run of `bertkit pretrain`, a checkpoint in any format of
                `bertkit.checkpoints.formats`, the id of a model on the Hub, or an open model.
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
        from bertkit.models.open_model import OpenModel  # it knows all classes of models

        # A config would silently keep unknown keys, such as misspelled ones.
        opened = OpenModel.open(path, revision=revision)
        known = {*opened.family.config.model_fields, *LABEL_KEYS, FEATURE_HEAD, CROSS_ENCODER}
        if unknown := sorted(changes.keys() - known):
            raise SettingsError(
                f"from_pretrained: {unknown[0]!r} is neither an argument nor a config key; config"
                f" keys are {', '.join(sorted(known))}"
            )
        opened = opened.change(**changes)
        config = opened.config
        check_class(config, cls.__name__, opened.folder)
        try:
            with without_memory():
                model = cls._for_heads(config, opened.heads)
        except SettingsError as error:
            raise CheckpointError(f"{opened.folder}: {error}") from None
        model.new_heads = fill_model(model, opened.checkpoint, config, new_heads=new_heads)
        return model.eval()

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write `config.json` and `model.safetensors`; return their records by file name.

        Of a model that is trained with LoRA, `config.json` and the adapter in PEFT's format.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: writing failed.
        """
        if self.adapter_origin is not None:
            return save_adapter(self, self.config.to_dict(), Path(folder), self.adapter_origin)
        return save_weights(self, self.config.to_dict(), Path(folder))

    def copy_with_adapter(self, folder: Path) -> Self:
        """Return the model, which is trained with LoRA, with an adapter of it; for evaluation."""
        copied = copy.deepcopy(self).eval()
        copied.load_adapter(folder)
        return copied

    def load_adapter(self, folder: Path) -> None:
        """Load what `save_pretrained` wrote of a model that is trained with LoRA."""
        fill_adapter(self, self.config.to_dict(), folder)

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        """Build the model for a checkpoint that has these heads."""
        return cls(config)


def pack_padded(
    config: BertConfig,
    input_ids: Int[Tensor, "batch length"],
    token_type_ids: Int[Tensor, "batch length"] | None,
    attention_mask: Shaped[Tensor, "batch length"] | None,
) -> tuple[PackedBatch, Tensor]:
    """Check and pack a padded batch; also return its mask, [batch, length], True at tokens."""
    COMPUTING.begin()
    if input_ids.dim() != 2:
        raise InputError(f"input_ids must be [batch, length], got {list(input_ids.shape)}")
    check_shapes(input_ids, token_type_ids, attention_mask)
    if token_type_ids is None:
        token_type_ids = torch.zeros_like(input_ids)
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    if input_ids.shape[1] > config.max_length:
        raise InputError(
            f"input_ids has {input_ids.shape[1]} tokens per row, and this model takes at most"
            f" {config.max_length}; truncate the text"
        )
    for name, ids, limit in (
        ("input_ids", input_ids, config.vocab_size),
        ("token_type_ids", token_type_ids, config.type_vocab_size or 2),  # 0: they aren't read
    ):
        if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= limit):
            raise InputError(f"{name} must be from 0 to {limit - 1}")
    mask, parts = mask.to(torch.bool), config.parts
    if (parts.num_buckets or parts.windows) and has_gaps(mask):
        raise InputError("attention_mask has padding between tokens, whose distances matter here")
    # With an offset, positions count tokens in transformers, too.
    counts_tokens = parts.position_offset > 0
    batch = PackedBatch.from_padded(input_ids, token_type_ids, mask, counts_tokens=counts_tokens)
    return batch, mask


def has_gaps(mask: PaddingMask) -> bool:
    """Whether a row has padding between tokens."""
    begins = F.pad(mask.int(), (1, 0)).diff(dim=1) == 1
    return bool((begins.sum(dim=1) > 1).any())


def check_shapes(
    input_ids: Int[Tensor, " *shape"],
    token_type_ids: Int[Tensor, " *shape"] | None,
    attention_mask: Shaped[Tensor, " *shape"] | None,
) -> None:
    """Check that `token_type_ids` and `attention_mask` have the shape of `input_ids`."""
    for name, other in (("token_type_ids", token_type_ids), ("attention_mask", attention_mask)):
        if other is not None and other.shape != input_ids.shape:
            raise InputError(
                f"{name} is {list(other.shape)} and must be {list(input_ids.shape)}, as input_ids"
            )
