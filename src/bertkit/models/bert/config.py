"""The sizes of a BERT, under the names of `config.json`."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.base.settings import describe_validation

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Size = Annotated[int, Field(ge=1, le=1 << 24)]

# Keys of foreign configs that change what the model computes in a way that this one doesn't do,
# and the values under which they change nothing.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "tie_word_embeddings": (True, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "embedding_size": (None,),
}


class BertConfig(BaseModel):
    """The architecture; the defaults are those of BERT-Base, uncased.

    Keys that bertkit doesn't know are kept and written back; keys that mean what it doesn't do
    are refused by name. `preset` gives the published sizes.

    Attributes:
        vocab_size: entries of the vocabulary.
        hidden_size: features of a token; a multiple of `num_attention_heads`.
        num_hidden_layers: encoder blocks.
        num_attention_heads: attention heads of each block.
        intermediate_size: features inside the feed-forward net.
        hidden_act: its activation, a key of `bertkit.nn.block.ACTIVATIONS`.
        hidden_dropout_prob: dropout on embeddings and on the output of each half of a block.
        attention_probs_dropout_prob: dropout on attention weights.
        max_position_embeddings: tokens of the longest sequence.
        type_vocab_size: segments.
        initializer_range: standard deviation of initial weights.
        layer_norm_eps: added to the variance in layer normalisation.
        pad_token_id: the id of [PAD].

    Raises:
        SettingsError: sizes that don't fit each other.

    Source: Devlin et al. 2018, section 3.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    model_type: Literal["bert"] = "bert"
    vocab_size: Size = 30522
    hidden_size: Size = 768
    num_hidden_layers: Annotated[int, Field(ge=1, le=1024)] = 12
    num_attention_heads: Size = 12
    intermediate_size: Size = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: Rate = 0.1
    attention_probs_dropout_prob: Rate = 0.1
    max_position_embeddings: Size = 512
    type_vocab_size: Size = 2
    initializer_range: Annotated[float, Field(gt=0.0)] = 0.02
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-12
    pad_token_id: Literal[0] = 0

    @field_validator("hidden_act")
    @classmethod
    def _activation_is_known(cls, name: str) -> str:
        from bertkit.nn.block import ACTIVATIONS  # it loads torch, which --help must not

        if name not in ACTIVATIONS:
            raise ValueError(f"there is no activation {name!r}; there are {', '.join(ACTIVATIONS)}")
        return name

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size ({self.hidden_size}) must be a multiple of"
                f" num_attention_heads ({self.num_attention_heads})"
            )
        for name, harmless in UNSUPPORTED.items():
            value = (self.model_extra or {}).get(name)
            if value not in harmless:
                raise ValueError(f"{name}={value!r} isn't something that bertkit's BERT does")
        return self

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(f"BertConfig: {describe_validation(error)}") from None

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """A published size, with changes such as `vocab_size`.

        Raises:
            SettingsError: no such size.
        """
        if name not in PRESETS:
            raise SettingsError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **changes})

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str | Path) -> Self:
        """The config in a foreign `config.json`.

        Raises:
            CheckpointError: it isn't a BERT, or means something that this one doesn't do.
        """
        try:
            return cls(**values)
        except (SettingsError, TypeError) as error:
            raise CheckpointError(f"{source}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """All keys for `config.json`, foreign ones included."""
        return self.model_dump(mode="json")


def _sizes(num_layers: int, hidden_size: int) -> dict[str, int]:
    return {
        "num_hidden_layers": num_layers,
        "hidden_size": hidden_size,
        "num_attention_heads": hidden_size // 64,
        "intermediate_size": 4 * hidden_size,
    }


# Source: Devlin et al. 2018 (base, large); Turc et al. 2019, "Well-Read Students Learn Better".
PRESETS: dict[str, dict[str, int]] = {
    "tiny": _sizes(2, 128),
    "mini": _sizes(4, 256),
    "small": _sizes(4, 512),
    "medium": _sizes(8, 512),
    "base": _sizes(12, 768),
    "large": _sizes(24, 1024),
}
