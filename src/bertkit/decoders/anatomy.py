"""What `bertkit inspect` says of an encoder-decoder."""

from collections.abc import Iterator, Mapping
from typing import Any

from bertkit.base.errors import pluralize
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.names import count_parameters
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.names import ENCODER_DECODER, SHARED, UNUSED_PARTS
from bertkit.jobs.inspect import Anatomy, Shapes, describe_sizes
from bertkit.models.bert.architectures import MASKED_LM, expected_shapes, linear_shapes, norm_shapes
from bertkit.models.bert.config import ENCODER

ARCHITECTURE = "EncoderDecoderModel"


class EncoderDecoder(Anatomy):
    """An encoder-decoder, of whose encoder the pooler is unused."""

    names = ENCODER_DECODER
    unused_parts = UNUSED_PARTS
    heads = ()
    architecture = ARCHITECTURE

    def read_config(self) -> EncoderDecoderConfig:
        """Read the config; errors as in `EncoderDecoderConfig.from_dict`."""
        return EncoderDecoderConfig.from_dict(self.checkpoint.config, self.checkpoint.folder)

    def expected(self, config: EncoderDecoderConfig, architecture: str) -> Shapes:
        """Return names and shapes of both halves and the head."""
        del architecture
        size, (encoder, decoder) = config.encoder.hidden_size, config.halves
        shapes = expected_shapes(encoder, ENCODER, ())
        for name, shape in expected_shapes(decoder, MASKED_LM, ("masked_lm",)).items():
            shapes[name.replace("encoder.", "decoder.", 1)] = shape
        for number in range(decoder.num_hidden_layers):
            layer = f"decoder.layers.{number}"
            shapes |= linear_shapes(f"{layer}.cross_attention.query", size, size)
            shapes |= linear_shapes(f"{layer}.cross_attention.key_value", 2 * size, size)
            shapes |= linear_shapes(f"{layer}.cross_attention.output", size, size)
            shapes |= norm_shapes(f"{layer}.cross_attention_norm", size)
        return shapes

    def count_tensors(self) -> dict[str, int]:
        """Count parameters by part; shared embeddings count once."""
        tensors = dict(self.checkpoint.tensors)
        if self.checkpoint.config.get("shares_embeddings") is True:
            tensors.pop(SHARED[1], None)
        return count_parameters({name: t.shape for name, t in tensors.items()}, self.names)

    @staticmethod
    def count_attention_heads(config: EncoderDecoderConfig) -> int:
        """Count the attention heads of all layers; a layer of the decoder has two attentions."""
        parts = (config.encoder, config.decoder, config.decoder)
        return sum(map(Anatomy.count_attention_heads, parts))

    @staticmethod
    def list_sizes(config: Mapping[str, Any], num_heads: int) -> Iterator[tuple[str, str]]:
        """Yield titles and descriptions of the sizes of both halves, and of how they are joined."""
        joined = EncoderDecoderConfig.from_dict(config, CONFIG_FILE)
        yield "encoder", describe_sizes(joined.encoder)
        yield "decoder", describe_sizes(joined.decoder)
        words = "shared" if joined.shares_embeddings else "separate"
        norms = "before" if joined.normalizes_first else "after"
        yield (
            "joined",
            f"{words} word embeddings, {joined.positions} positions, norms {norms} each part",
        )
        heads = pluralize(num_heads, "head")
        yield "attention", f"{heads}, including the decoder's self- and cross-attention"
