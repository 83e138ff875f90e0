"""Adapters that give decoding the next-token scores of a model, computed with a KV cache."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.key_value_cache import KVCache, find_sources
from bertkit.nn.packing import PackedBatch


class PromptSequences:
    """Continuations of prompts by a left-to-right model, with a key/value cache.

    Args:
        model: in evaluation mode.
        prompts: the first tokens of each row, without the end token; on the model's device.
    """

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._batch = KVCache(prompts)

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the scores of each row's next token."""
        prompts = self._batch.prompts
        last = None if prompts is None else prompts.last_tokens
        return self._model.next_scores(self._batch, last).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep the given rows only."""
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append one token to each row."""
        self._batch.extend(tokens)


class SourceSequences:
    """Outputs of an encoder-decoder for a batch of sources, with a key/value cache.

    Args:
        model: in evaluation mode.
        sources: the encoder's inputs; on the model's device.
    """

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
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append one token to each row."""
        self._batch.extend(tokens)
