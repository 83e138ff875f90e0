"""Does the second text follow the first?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.heads import IS_NEXT


@dataclass(frozen=True)
class NextSentence:
    """Judges pairs of texts."""

    loaded: LoadedModel

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> Self:
        """Load a run of `bertkit pretrain`, or a Hugging Face folder with both heads.

        Raises:
            MissingFileError: no model is there.
            CheckpointError: config, tensors or vocabulary don't fit each other.
            DamagedFileError: a file was cut short or altered.
        """
        return cls(LoadedModel.load(path, device))

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
        nowhere = torch.empty(0, dtype=torch.int64, device=self.loaded.model.masked_lm.bias.device)
        for indices, batch in self.loaded.batches(encodings):
            with torch.inference_mode():
                _, scores = self.loaded.model.scores(batch, nowhere)
            probabilities = scores.float().softmax(dim=-1)[:, IS_NEXT].tolist()
            results.update(zip(indices, probabilities, strict=True))
        return [results[index] for index in range(len(pairs))]
