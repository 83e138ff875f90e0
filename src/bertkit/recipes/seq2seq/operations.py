"""The arithmetic of a training step."""

from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.recipes.seq2seq.token_pairs import PairBatch


def count_operations(config: EncoderDecoderConfig, batch: PairBatch) -> float:
    """Floating-point operations of all matrix products in one training step."""
    read, written = batch.source.num_tokens, batch.target.num_tokens
    hidden, inner = config.encoder.hidden_size, config.encoder.intermediate_size
    block = 4 * hidden * hidden + 2 * hidden * inner
    encoder = read * block + 2 * hidden * _squares(batch.source.lengths, batch.source.lengths)
    inner = config.decoder.intermediate_size
    block = 6 * hidden * hidden + 2 * hidden * inner
    decoder = written * block + read * 2 * hidden * hidden
    decoder += 2 * hidden * _squares(batch.target.lengths, batch.target.lengths)
    decoder += 2 * hidden * _squares(batch.target.lengths, batch.source.lengths)
    head = written * hidden * (hidden + config.decoder.vocab_size)
    layers = config.encoder.num_hidden_layers * encoder
    layers += config.decoder.num_hidden_layers * decoder
    return 6.0 * (layers + head)


def _squares(ones: tuple[int, ...], others: tuple[int, ...]) -> int:
    """Pairs of tokens that look at each other."""
    return sum(one * other for one, other in zip(ones, others, strict=True))
