"""The sizes of a ModernBERT, under the names of `config.json`.

Files have two spellings of the kinds of layers: how often one is global, with two bases of rotary
positions, as published; or all kinds, with parameters for each, as transformers 5 writes them. The
first is the one that all its versions read, so it is the one that is kept.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertkit.models.bert.config import (
    ENCODER,
    NOT_NONE,
    Activation,
    BertConfig,
    Epsilon,
    Rate,
    Size,
    TokenId,
    find_sizes,
)
from bertkit.models.modernbert.names import MODERNBERT
from bertkit.nn.parts import EncoderParts, HeadParts

GLOBAL, LOCAL = "full_attention", "sliding_attention"
THETAS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}
Kind = Literal["full_attention", "sliding_attention"]
Kinds = Annotated[list[Kind], Field(fail_fast=True)]
Base = Annotated[float, Field(gt=1.0, le=1e12)]
BIASES = ("norm_bias", "attention_bias", "mlp_bias")


class ModernBertConfig(BertConfig):
    """The architecture; the defaults are those of ModernBERT-base.

    Layers are global or local. Every head has a dense layer and a norm before its last layer.

    Attributes:
        local_attention: tokens of a local layer's window, half of them on either side.
        global_attn_every_n_layers: layer 0 and every n-th one after it are global.
        layer_types: the kind of each layer, where that isn't so.
        global_rope_theta: base of the rotary positions of global layers.
        local_rope_theta: the same for local ones; None for that of global ones.
        embedding_dropout: on the embeddings; `hidden_dropout_prob` is that within feed-forward.
        classifier_activation: of the layer before the last one of every head.
        classifier_pooling: what a classifier of sequences reads: [CLS], or the mean of the tokens.

    Source: Warner et al. 2024, section 2.1 and appendix A.
    """

    model_types = ("modernbert",)
    names: ClassVar = MODERNBERT
    their_keys: ClassVar = {
        "hidden_act": "hidden_activation",
        "hidden_dropout_prob": "mlp_dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "layer_norm_eps": "norm_eps",
    }

    model_type: str = "modernbert"
    vocab_size: Size = 50368
    num_hidden_layers: Annotated[int, Field(ge=1, le=256)] = 22
    intermediate_size: Size = 1152
    hidden_dropout_prob: Rate = 0.0
    attention_probs_dropout_prob: Rate = 0.0
    max_position_embeddings: Size = 8192
    type_vocab_size: Annotated[Literal[0], Field(exclude=True)] = 0
    layer_norm_eps: Epsilon = 1e-5
    pad_token_id: TokenId = 50283
    classifier_dropout: Rate | None = 0.0
    position_embedding_type: Annotated[str | None, Field(exclude=True)] = None  # says nothing
    local_attention: Annotated[int, Field(ge=2, le=1 << 24)] = 128
    global_attn_every_n_layers: Size = 3
    layer_types: Annotated[Kinds | None, NOT_NONE] = None
    global_rope_theta: Base = 160_000.0
    local_rope_theta: Base | None = 10_000.0
    embedding_dropout: Rate = 0.0
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    classifier_bias: bool = False
    decoder_bias: Literal[True] = True
    classifier_activation: Activation = "gelu"
    classifier_pooling: Literal["cls", "mean"] = "cls"

    @model_validator(mode="before")
    @classmethod
    def _read_layers(cls, values: object) -> object:
        return read_layers(values) if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if len({getattr(self, name) for name in BIASES}) > 1:
            raise ValueError(f"{', '.join(BIASES)} must be the same, all true or all false")
        if self.hidden_size // self.num_attention_heads % 2:
            raise ValueError("hidden_size / num_attention_heads must be even, for rotary positions")
        if (number := len(self.kinds)) != (layers := self.num_hidden_layers):
            raise ValueError(f"layer_types must have {layers} kinds, one for a layer, got {number}")
        return self

    @property
    def kinds(self) -> Sequence[str]:
        """The kind of each layer."""
        numbers, step = range(self.num_hidden_layers), self.global_attn_every_n_layers
        return self.layer_types or [LOCAL if number % step else GLOBAL for number in numbers]

    @property
    def parts(self) -> EncoderParts:
        """As in `BertConfig`."""
        base, window = self.global_rope_theta, self.local_attention // 2
        local = (self.local_rope_theta or base, window)
        parts = [(base, None) if kind == GLOBAL else local for kind in self.kinds]
        return EncoderParts(
            has_positions=False,
            rotary_bases=tuple(own_base for own_base, _ in parts),
            windows=tuple(own_window for _, own_window in parts),
            normalizes_first=True,
            has_first_norm=False,
            is_gated=True,
            has_biases=self.norm_bias,
            has_head_biases=self.classifier_bias,
        )

    def find_head(self, architecture: str) -> HeadParts | None:
        """As in `BertConfig`."""
        if architecture == ENCODER:
            return None
        return HeadParts(self.classifier_activation, has_norm=True, pooling=self.classifier_pooling)

    def find_dropout(self, architecture: str) -> float:
        """As in `BertConfig`."""
        del architecture
        return self.classifier_dropout or 0.0

    @property
    def dropout_rates(self) -> Mapping[str, float]:
        """As in `BertConfig`."""
        rates = {"embeddings": self.embedding_dropout, "inner": self.hidden_dropout_prob}
        return {**rates, "attention": self.attention_probs_dropout_prob, "feed_forward": 0.0}

    def find_deviation(self, weight: str) -> float:
        """As in `BertConfig`: less where a layer adds to the residual, more in the last one."""
        if weight.startswith(("classifier", "qa_outputs")):
            return float(self.hidden_size**-0.5)
        adds = weight.endswith(("output.weight", "down.weight", "dense.weight"))
        return self.initializer_range / (math.sqrt(2 * self.num_hidden_layers) if adds else 1)

    def keep_layers(self, numbers: Sequence[int]) -> Self:
        """As in `BertConfig`, each layer of its kind."""
        kept = {"num_hidden_layers": len(numbers), "layer_types": [self.kinds[n] for n in numbers]}
        return type(self)(**{**self.to_dict(), **kept})

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """As in `BertConfig`; the inner layer is 1.5 times as wide, since the gate doubles it."""
        size = find_sizes(name)["hidden_size"]
        return super().preset(name, **{"intermediate_size": size * 3 // 2, **changes})

    @property
    def word_activation(self) -> str:
        """As in `BertConfig`."""
        return self.classifier_activation


def read_layers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config in the published spelling; `layer_types` stays where no step describes it.

    Raises:
        ValueError: rotary positions are scaled, or described otherwise.
    """
    read = {name: value for name, value in values.items() if name != "rope_parameters"}
    if read.pop("rope_scaling", None) is not None:
        raise ValueError("rope_scaling isn't supported")
    rotary, kinds = values.get("rope_parameters") or {}, read.get("layer_types")
    if not isinstance(rotary, dict) or rotary.keys() - THETAS.keys():
        raise ValueError(f"rope_parameters must be those of {GLOBAL} and {LOCAL}")
    for kind, found in rotary.items():
        for name, value in found.items() if isinstance(found, dict) else ():
            if name == "rope_theta":
                read[THETAS[kind]] = value
            elif value != "default":
                raise ValueError(f"{name} {value!r:.80} isn't supported in rope_parameters")
    is_whole = isinstance(kinds, list) and len(kinds) == read.get("num_hidden_layers")
    if step := find_step(kinds) if is_whole and kinds else None:
        read = {**read, "layer_types": None, "global_attn_every_n_layers": step}
    return read


def find_step(kinds: list[Any]) -> int | None:
    """Return n if layer 0 and every n-th one after it are global and no others, else None."""
    step = kinds.index(GLOBAL, 1) if GLOBAL in kinds[1:] else len(kinds)
    wanted = [LOCAL if number % step else GLOBAL for number in range(len(kinds))]
    return step if kinds == wanted else None
