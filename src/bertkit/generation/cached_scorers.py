"""The sequences of our models, as a search asks for them.

Two ways for each model: a token at a time, where keys and values of what was written are kept, and
every prefix anew. The second is what the first is tested and measured against.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.key_value_cache import KVCache, find_sources
from bertkit.nn.packing import PackedBatch


class PromptSequences:
    """What a left-to-right model writes behind prompts.

    Args:
        model: in evaluation.
        prompts: what the rows begin with, without an end; on the model's device.
    """

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._batch = KVCache(prompts)

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Of each row's next token."""
        prompts = self._batch.prompts
        last = None if prompts is None else prompts.last_tokens
        return self._model.next_scores(self._batch, last).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep some rows."""
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each row."""
        self._batch.extend(tokens)


class SourceSequences:
    """What an encoder-decoder writes of sources, all of which it reads at once.

    Args:
        model: in evaluation.
        sources: what is read; on the model's device.
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
        """Of each row's next token."""
        return self._model.next_scores(self._batch, self._memory).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep some rows, and of what is read what they belong to."""
        kept = find_sources(rows, self._num_rows, self._num_sources)
        if kept is not None:
            self._memory.select(kept)
            self._num_sources = len(kept)
        self._num_rows = len(rows)
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each row."""
        self._batch.extend(tokens)


class PromptSequencesAgain:
    """As `PromptSequences`, but each pass reads all of each row.

    Args:
        model: in evaluation.
        prompts: what the rows begin with; on the model's device.
    """

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._rows = list(torch.split(prompts.input_ids, list(prompts.lengths)))

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Of each row's next token."""
        batch = pack_rows(self._rows)
        return self._model.next_scores(batch, batch.last_tokens).float()

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep some rows."""
        self._rows = [self._rows[row] for row in rows.tolist()]

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each row."""
        self._rows = [
            torch.cat(pair) for pair in zip(self._rows, torch.split(tokens, 1), strict=True)
        ]


class SourceSequencesAgain:
    """As `SourceSequences`, but each pass reads all that was written of each row.

    Args:
        model: in evaluation.
        sources: what is read; on the model's device.
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
        """Of each row's next token."""
        batch = pack_rows(self._rows)
        tokens = self._model.decoder(batch, self._memory).index_select(0, batch.last_tokens)
        words = self._model.decoder.embeddings.word.weight
        scores: Tensor = self._model.masked_lm(tokens, words)
        return scores.float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep some rows, and of what is read what they belong to."""
        kept = find_sources(rows, len(self._rows), self._num_sources)
        if kept is not None:
            self._memory.select(kept)
            self._num_sources = len(kept)
        self._rows = [self._rows[row] for row in rows.tolist()]

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each row."""
        self._rows = [
            torch.cat(pair) for pair in zip(self._rows, torch.split(tokens, 1), strict=True)
        ]


def pack_rows(rows: list[Tensor]) -> PackedBatch:
    """Rows of ids, end to end."""
    ids = torch.cat(rows)
    lengths = tuple(map(len, rows))
    places = torch.cat([torch.arange(length, device=ids.device) for length in lengths])
    return PackedBatch(ids, torch.zeros_like(ids), places, lengths)
