"""The config of an encoder-decoder: the sizes of both halves, and how they are joined."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.families import FAMILIES, check_family, find_family
from bertkit.decoders.names import MODEL_TYPE, OWN_MODEL_TYPE
from bertkit.models.bert.config import BertConfig, ModelConfig
from bertkit.models.bert.labels import ConfigValues
from bertkit.nn.parts import EncoderParts

Id = Annotated[int, Field(ge=0, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
CROSS_KEY = (
    "add_cross_attention"  # in a file's decoder part; here every decoder has cross-attention
)


class PreNormConfig(BertConfig):
    """The sizes of a half whose layer norms come before sub-layers."""

    @property
    def parts(self) -> EncoderParts:
        """As in `BertConfig`."""
        return EncoderParts(normalizes_first=True)


def check_half(config: ConfigValues, source: str | Path) -> None:
    """Raise a `CheckpointError` if a config isn't a BERT's, of which both halves are."""
    check_family(config, source)
    if (family := find_family(config)) is not FAMILIES["bert"]:
        raise CheckpointError(
            f"{source} is {family.title}, and the halves of an encoder-decoder are BERTs; take one,"
            " such as google-bert/bert-base-multilingual-cased"
        )


class EncoderDecoderConfig(ModelConfig):
    """The architecture; by default, two BERTs joined as in transformers.

    Attributes:
        encoder: sizes of the encoder.
        decoder: sizes of the decoder; `is_decoder` is true, and `hidden_size` is the encoder's.
        decoder_start_token_id: id of the token that begins the decoder's input, [CLS].
        eos_token_id: id of the token that ends a sequence, [SEP].
        pad_token_id: the id of [PAD].
        shares_embeddings: whether both halves share one table of word embeddings.
        normalizes_first: whether blocks are pre-norm: layer norm before each sub-layer.
        positions: learned, or fixed sines and cosines.

    Raises:
        SettingsError: a value is invalid, or the halves don't fit each other.

    Source: Vaswani et al. 2017; two BERTs: Rothe et al. 2020, "Leveraging Pre-trained Checkpoints
    for Sequence Generation Tasks".
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    encoder: BertConfig
    decoder: BertConfig
    decoder_start_token_id: Id
    eos_token_id: Id
    pad_token_id: Literal[0] = 0
    shares_embeddings: Flag = False
    normalizes_first: Flag = False
    positions: Literal["learned", "sinusoidal"] = "learned"

    @model_validator(mode="before")
    @classmethod
    def _plain_halves(cls, values: JsonValue) -> JsonValue:
        if isinstance(values, dict) and isinstance(decoder := values.get("decoder"), dict):
            rest = {name: value for name, value in decoder.items() if name != CROSS_KEY}
            values = {**values, "decoder": rest}
        return values

    @model_validator(mode="after")
    def _halves_fit(self) -> Self:
        if self.encoder.is_decoder or not self.decoder.is_decoder:
            raise ValueError("the encoder must have is_decoder=false, and the decoder true")
        if self.encoder.hidden_size != self.decoder.hidden_size:
            raise ValueError(
                f"the decoder's hidden_size ({self.decoder.hidden_size}) must be the encoder's"
                f" ({self.encoder.hidden_size})"
            )
        if self.shares_embeddings and self.encoder.vocab_size != self.decoder.vocab_size:
            raise ValueError("halves that share embeddings must have the same vocab_size")
        for name in ("decoder_start_token_id", "eos_token_id"):
            if getattr(self, name) >= self.decoder.vocab_size:
                raise ValueError(f"{name} must be under the decoder's vocab_size")
        return self

    @classmethod
    def of(cls, config: BertConfig, *, start_id: int, end_id: int, **joined: Any) -> Self:
        """Build a config with both halves of the sizes of one BERT.

        Args:
            config: the sizes of both halves.
            start_id: the `decoder_start_token_id`.
            end_id: the `eos_token_id`.
            joined: other attributes of this class.
        """
        plain = config.to_dict()
        return cls(
            encoder=BertConfig(**{**plain, "is_decoder": False}),
            decoder=BertConfig(**{**plain, "is_decoder": True}),
            decoder_start_token_id=start_id,
            eos_token_id=end_id,
            **joined,
        )

    @classmethod
    def from_dict(cls, values: ConfigValues, source: str | Path) -> Self:
        """Build the config from a foreign `config.json`.

        Raises:
            CheckpointError: it isn't a valid encoder-decoder of two BERTs.
        """
        kind = values.get("model_type")
        if kind not in (MODEL_TYPE, OWN_MODEL_TYPE):
            raise CheckpointError(
                f"{source} isn't an encoder-decoder (its model_type is {kind!r:.80}); train one"
                " with `bertkit finetune translate`"
            )
        for half in (values.get("encoder"), values.get("decoder")):
            if isinstance(half, dict):
                check_half(half, source)
        return super().from_dict(values, source)

    @property
    def halves(self) -> tuple[BertConfig, BertConfig]:
        """The configs of the encoder and of the decoder, with their parts."""
        if not self.normalizes_first:
            return self.encoder, self.decoder
        encoder, decoder = (
            PreNormConfig(**half.to_dict()) for half in (self.encoder, self.decoder)
        )
        return encoder, decoder

    @property
    def is_transformers_own(self) -> bool:
        """Whether transformers' EncoderDecoderModel computes the same."""
        return not self.normalizes_first

    def to_dict(self) -> dict[str, Any]:
        """Return all keys for `config.json`, unknown ones included."""
        values = super().to_dict()
        return {
            **values,
            "model_type": MODEL_TYPE if self.is_transformers_own else OWN_MODEL_TYPE,
            "is_encoder_decoder": True,
            "decoder": {**values["decoder"], CROSS_KEY: True},
        }
