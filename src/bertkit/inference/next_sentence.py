"""Does the second text follow the first?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.heads import (
    IS_NEXT,
    BertForNextSentencePrediction,
    BertForPreTraining,
)


@dataclass(frozen=True)
class NextSentence:
    """Judges pairs of texts."""

    loaded: LoadedModel[BertForNextSentencePrediction | BertForPreTraining]

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", *, revision: str | None = None) -> Self:
        """Load any checkpoint with a next-sentence head.

        Arguments and errors are those of `LoadedModel.load`.
        """
        return cls(LoadedModel.load(BertForNextSentencePrediction, path, device, revision=revision))

    def __call__(self, first: str, second: str) -> float:
        """The probability, from 0 to 1, that `second` follows `first`.

        Raises:
            InputError: one is empty, or together they are too long.
        """
        return self.score_pairs([(first, second)])[0]

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability for each pair.

        Raises:
            InputError: a text is empty, or a pair is too long.
        """
        encodings = [
            self.loaded.encode(first, second, name=f"pair {number}", read_mask=False)
            for number, (first, second) in enumerate(pairs, start=1)
        ]
        results: dict[int, float] = {}
        for indices, batch in self.loaded.batches(encodings):
            with torch.inference_mode():
                scores = self.loaded.model.pair_scores(batch)
            probabilities = scores.float().softmax(dim=-1)[:, IS_NEXT].tolist()
            results.update(zip(indices, probabilities, strict=True))
        return [results[index] for index in range(len(pairs))]
