"""Next-sentence prediction: the probability that a text follows another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import torch

from bertkit.base.errors import InputError
from bertkit.inference.engines.choice import choose_engine
from bertkit.inference.engines.engine import Engine
from bertkit.inference.loading import LoadedModel
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.models.bert.heads import (
    IS_NEXT,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.tokenization.engine import Encoding
from bertkit.tokenization.tokenizer import check_several


@dataclass(frozen=True)
class NextSentence:
    """Predicts whether the second text of a pair follows the first.

    Attributes:
        loaded: the model and its tokenizer.
        engine_name: the runtime of the encoder, as in `choose_engine`.
        precision: of the encoder's weights and matrix products, as in `choose_engine`.
    """

    loaded: LoadedModel[BertForNextSentencePrediction | BertForPreTraining]
    engine_name: EngineName = "auto"
    precision: PrecisionName = "auto"

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        device: str = "auto",
        *,
        revision: str | None = None,
        engine: EngineName = "auto",
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load any checkpoint with a next-sentence head.

        Arguments and errors are those of `LoadedModel.load` and `choose_engine`.
        """
        return cls(
            LoadedModel.load(BertForNextSentencePrediction, path, device, revision=revision),
            engine,
            precision,
        )

    def __call__(self, first: str, second: str) -> float:
        """Return the probability, from 0 to 1, that `second` follows `first`."""
        return self.score_pairs([(first, second)])[0]

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability for each pair.

        Raises:
            InputError: something isn't a pair of texts, a text is empty, or a pair is too long.
        """
        check_several(pairs)
        encodings = [
            self._encode(f"pair {number}", *_take_pair(f"pair {number}", pair))
            for number, pair in enumerate(pairs, start=1)
        ]
        results: dict[int, float] = {}
        lengths = [len(encoding) for encoding in encodings]
        for chosen in plan_batches(lengths, self._engine.tokens_per_batch):
            probabilities = self._score([encodings[index] for index in chosen])
            results.update(zip(chosen, probabilities, strict=True))
        return [results[index] for index in range(len(pairs))]

    @cached_property
    def _engine(self) -> Engine:
        return choose_engine(self.engine_name, self.loaded.model, precision=self.precision)

    @torch.inference_mode()
    def _score(self, encodings: Sequence[Encoding]) -> list[float]:
        batch = PackedBatch.from_sequences(
            [encoding.ids for encoding in encodings],
            [encoding.token_type_ids for encoding in encodings],
        )
        (tokens,) = self._engine(batch)
        model = self.loaded.model
        scores = model.next_sentence(model.pooler(tokens, batch))
        probabilities: list[float] = scores.softmax(dim=-1)[:, IS_NEXT].tolist()
        return probabilities

    def _encode(self, name: str, first: str, second: str) -> Encoding:
        """Encode a pair without truncation."""
        if self.loaded.model.config.type_vocab_size == 1:
            raise InputError("this model takes single texts only: its type_vocab_size is 1")
        encoding = self.loaded.tokenizer.encode(first, second)
        segments = encoding.token_type_ids
        # The first segment has two special tokens, [CLS] and [SEP], the second one [SEP].
        is_empty = segments.count(0) == 2 or segments.count(1) == 1
        self.loaded.check_text(name, len(encoding), is_empty=is_empty)
        return encoding


def _take_pair(name: str, pair: object) -> tuple[str, str]:
    """Return two texts; their types are checked when they are encoded."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{name}: expected a tuple of two texts, got {pair!r:.80}")
    return pair[0], pair[1]
