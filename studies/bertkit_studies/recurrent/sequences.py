"""The recurrent translator step by step, for the searches of `bertkit.decoders.decoding`."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoders.key_value_cache import find_sources
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.translator import AttentionalTranslator


class TranslatorSequences:
    """Unfinished translations: at first one row per source, with only the start token.

    Args:
        model: in evaluation mode.
        sources: the sequences to translate.
    """

    @torch.inference_mode()
    def __init__(self, model: AttentionalTranslator, sources: PackedBatch) -> None:
        self._model = model
        self._memory = model.read(sources)
        self._state = model.begin(self._memory)
        start = model.config.decoder_start_token_id
        self.extend(sources.first_tokens.new_full((len(sources.lengths),), start).long())

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return logits of each row's next token."""
        model = self._model
        return model.word_scores(model.features(self._embedded, self._state, self._context)).float()

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append a token to each row."""
        self._embedded = self._model.embed(tokens)
        self._state, self._context, _ = self._model.step(self._embedded, self._state, self._memory)

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep these rows, in this order; each source's rows stay adjacent and equally many."""
        kept = find_sources(rows, len(self._state), len(self._memory.mask))
        self._state, self._context, self._embedded = (
            part.index_select(0, rows) for part in (self._state, self._context, self._embedded)
        )
        if kept is not None:
            self._memory = self._memory.select(kept)
