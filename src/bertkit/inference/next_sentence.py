"""Next-sentence prediction: the probability that a text follows another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.base.errors import InputError
from bertkit.inference.engines.engine import check_finite
from bertkit.inference.numbers import log_sum_exp
from bertkit.inference.pipeline import SAMPLES, EncoderPipeline, NamedInput
from bertkit.models.bert.architectures import IS_NEXT, NEXT_SENTENCE
from bertkit.nn.packed_ids import PackedIds
from bertkit.tokenization.encoding import Encoding


@dataclass(frozen=True)
class NextSentence(EncoderPipeline[tuple[str, str], float]):
    """Predicts whether the second text of a pair follows the first.

    A call with a tuple of two texts returns the probability, from 0 to 1; a call with a list of
    such pairs, a list.

    Examples:
        >>> follows = NextSentence.load("run/")  # doctest: +SKIP
        >>> follows(("She opened the door.", "The room was dark."))  # doctest: +SKIP
        0.98

    Attributes:
        loaded: the model, with a next-sentence head, and its tokenizer.
        engine: the runtime of the encoder.
    """

    architecture = NEXT_SENTENCE
    noun = "pair"

    def warm_up(self) -> None:
        """Judge two pairs."""
        self([(text, "b") for text in SAMPLES])

    def accept(self, named: NamedInput) -> NamedInput:
        """Return a pair; its texts are checked when they are encoded."""
        if not isinstance(named.value, tuple | list) or len(named.value) != 2:
            raise InputError(
                f"{named.name}: expected a tuple of two texts, got {named.value!r:.80}"
            )
        return named

    def encode_window(self, inputs: list[NamedInput]) -> list[Encoding]:
        """Encode pairs without truncation."""
        self.loaded.check_pairs()
        tokenizer, encodings = self.loaded.tokenizer, []
        for named in inputs:
            encoding = tokenizer.encode(*named.value)
            is_empty = not all(tokenizer.piece_ids(named.value))
            self.loaded.check_text(named.name, len(encoding), is_empty=is_empty)
            encodings.append(encoding)
        return encodings

    def compute_batch(self, batch: Sequence[Encoding]) -> list[float]:
        """Compute the probability of each pair."""
        ids = PackedIds.from_sequences(
            [encoding.ids for encoding in batch],
            [encoding.token_type_ids for encoding in batch],
        )
        scores = self.engine.score_pairs(ids)
        check_finite(scores, "the model's scores")
        logs = scores[:, IS_NEXT] - log_sum_exp(scores)
        probabilities: list[float] = np.exp(logs).tolist()
        return probabilities
