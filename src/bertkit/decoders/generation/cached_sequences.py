"""Sequences whose keys and values are kept: continuations of prompts, and outputs for sources."""

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoders.key_value_cache import KVCache, find_sources
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer


@lru_cache(maxsize=4)
def find_suppressed_tokens(tokenizer: Tokenizer, end_id: int, num_scores: int) -> tuple[int, ...]:
    """Return ids to suppress: special but the end token, unused, and beyond the vocabulary."""
    unused = {id_ for id_ in tokenizer.unused_ids if id_ < num_scores}
    suppressed = (tokenizer.special_ids | unused) - {end_id}
    return (*sorted(suppressed), *range(tokenizer.vocab_size, num_scores))


class CachedSequences:
    """Sequences with a key/value cache; the model is in evaluation mode."""

    _batch: KVCache

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep the given rows only."""
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append one token to each row."""
        self._batch.extend(tokens)


class PromptSequences(CachedSequences):
    """Continuations of prompts, the first tokens of each row, by a left-to-right model."""

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._batch = KVCache(prompts)

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the scores of each row's next token."""
        prompts = self._batch.prompts
        last = None if prompts is None else prompts.last_tokens
        return self._model.next_scores(self._batch, last).float()


class SourceSequences(CachedSequences):
    """Outputs of an encoder-decoder for a batch of sources."""

    @torch.inference_mode()
    def __init__(self, model: EncoderDecoderModel, sources: PackedBatch) -> None:
        self._model = model
        self._memory = model.read(sources)
        self._num_sources = self._num_rows = len(sources.lengths)
        starts = [[model.config.decoder_start_token_id]] * self._num_rows
        self._batch = KVCache(PackedBatch.from_single(starts).to(sources.input_ids.device))

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the scores of each row's next token."""
        return self._model.next_scores(self._batch, self._memory).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep the given rows, and the encoder outputs that they attend to."""
        kept = find_sources(rows, self._num_rows, self._num_sources)
        if kept is not None:
            self._memory.select(kept)
            self._num_sources = len(kept)
        self._num_rows = len(rows)
        super().select(rows)
