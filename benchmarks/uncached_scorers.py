"""Adapters as in `decoders.generation.cached_sequences`, which recompute all tokens at each step.

They are the reference in tests and benchmarks of the cache.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoders.key_value_cache import find_sources
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch


class UncachedPromptSequences:
    """Like `PromptSequences`, but without a cache: each step recomputes whole rows.

    Args:
        model: in evaluation mode.
        prompts: the first tokens of each row; on the model's device.
    """

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._rows = list(torch.split(prompts.input_ids, list(prompts.lengths)))

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        batch = pack_rows(self._rows)
        return self._model.next_scores(batch, batch.last_tokens).float()

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        self._rows = [self._rows[row] for row in rows.tolist()]

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        self._rows = [
            torch.cat(pair) for pair in zip(self._rows, torch.split(tokens, 1), strict=True)
        ]


class UncachedSourceSequences:
    """Like `SourceSequences`, but without a cache: each step recomputes whole target rows.

    Args:
        model: in evaluation mode.
        sources: the encoder's inputs; on the model's device.
    """

    @torch.inference_mode()
    def __init__(self, model: EncoderDecoderModel, sources: PackedBatch) -> None:
        self._model = model
        self._memory = model.read(sources)
        self._num_sources = len(sources.lengths)
        start = sources.input_ids.new_tensor([model.config.decoder_start_token_id])
        self._rows = [start] * self._num_sources

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        batch = pack_rows(self._rows)
        tokens = self._model.decoder(batch, self._memory).index_select(0, batch.last_tokens)
        words = self._model.decoder.embeddings.word.weight
        scores: Tensor = self._model.masked_lm(tokens, words)
        return scores.float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        kept = find_sources(rows, len(self._rows), self._num_sources)
        if kept is not None:
            self._memory.select(kept)
            self._num_sources = len(kept)
        self._rows = [self._rows[row] for row in rows.tolist()]

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        self._rows = [
            torch.cat(pair) for pair in zip(self._rows, torch.split(tokens, 1), strict=True)
        ]


def pack_rows(rows: list[Tensor]) -> PackedBatch:
    ids = torch.cat(rows)
    lengths = tuple(map(len, rows))
    places = torch.cat([torch.arange(length, device=ids.device) for length in lengths])
    return PackedBatch(ids, torch.zeros_like(ids), places, lengths)
