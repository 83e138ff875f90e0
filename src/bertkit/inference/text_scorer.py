"""Log probabilities of texts.

A query is a sequence to run through the model, and the tokens that it predicts. A model sees the
whole text but the token that it predicts, so there is one query per token.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np

from bertkit.base.errors import InputError
from bertkit.base.wings import TEXT_SCORERS, load_object
from bertkit.inference.engines.engine import check_finite
from bertkit.inference.numbers import log_sum_exp
from bertkit.inference.pipeline import EncoderPipeline, NamedInput
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.metrics.texts import find_perplexity
from bertkit.tokenization.long_texts import TextCutter
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Query:
    """A sequence, and the tokens that are predicted from its hidden states."""

    sequence: Sequence[int]  # with special tokens; may be shared by many queries
    masked: range  # indices of the tokens that are replaced by [MASK]
    places: range  # indices of the hidden states that predict
    labels: Sequence[int]  # the token id that each of them should predict

    def __len__(self) -> int:
        return len(self.sequence)

    def ids(self, mask_id: int) -> list[int]:
        """Return the sequence with its [MASK]s."""
        ids = list(self.sequence)
        ids[self.masked.start : self.masked.stop] = [mask_id] * len(self.masked)
        return ids


def ask_masked(pieces: Sequence[int], tokenizer: Tokenizer, limit: int) -> Iterator[Query]:
    """Yield one query per token of a text: it is masked, and so are later pieces of its word.

    Without that, the pieces of a rare word would give each other away. A text of more tokens than
    the limit is split into overlapping parts, and a token is predicted where it is near the middle.

    Source: Salazar et al. 2020, "Masked Language Model Scoring" (1910.14659); within words Kauf and
    Ivanova 2023, "A Better Way to Do Masked Language Model Scoring" (2305.10588).
    """
    room = limit - tokenizer.num_special()
    [num_before] = tokenizer.find_starts(0)
    step = max(1, room // 2)
    # The last part is as long as the others.
    stops = [part.stop for part in TextCutter(room, step).cut(len(pieces))]
    begins = [max(0, stop - room) for stop in stops]
    parts = [pieces[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
    sequences = [tokenizer.join(part)[0] for part in parts]
    ends = list(range(1, len(pieces) + 1))  # of each piece's word
    for index in reversed(range(1, len(pieces))):
        if tokenizer.is_continuation[pieces[index]]:
            ends[index - 1] = ends[index]
    for index, word_end in enumerate(ends):
        number = min(max(0, index - room // 4) // step, len(parts) - 1)
        place = num_before + index - begins[number]
        masked = range(place, num_before + min(word_end - begins[number], room))
        labels = pieces[index : index + 1]
        yield Query(sequences[number], masked, range(place, place + 1), labels)


# A text has as many queries as tokens: fewer texts at a time than for other work.
WINDOW_CHARS = 1 << 14


@dataclass(frozen=True)
class TextScore(Tabular):
    """The log probability of one text.

    Attributes:
        text: the text as given.
        num_tokens: tokens that were predicted: the text's pieces and, if that is, its end.
        num_unknown: how many of these are [UNK].
        log_probability: sum of the natural log probabilities of these tokens.
    """

    text: str
    num_tokens: int
    num_unknown: int
    log_probability: float

    @property
    def perplexity(self) -> float:
        """The exponential of the mean negative log probability per token."""
        return find_perplexity(-self.log_probability / self.num_tokens)

    def as_row(self) -> Row:
        """Return the fields and the perplexity."""
        return {**super().as_row(), "perplexity": self.perplexity}


@dataclass(frozen=True)
class ScorableText:
    """A text and the queries that score it."""

    text: str
    num_tokens: int
    num_unknown: int
    queries: list[Query]


@dataclass(frozen=True)
class TextScorer(EncoderPipeline[str, TextScore]):
    """Scores texts with a model that predicts each token from all others.

    A call with a text returns a `TextScore`; a call with a list, a list.

    Examples:
        >>> score = TextScorer.load("run/")  # doctest: +SKIP
        >>> score("She opened the door.").log_probability  # doctest: +SKIP
        -9.4

    Attributes:
        loaded: the model and its tokenizer.
        engine: the runtime of the encoder.
    """

    window_chars = WINDOW_CHARS
    most_tokens = sys.maxsize  # the whole text

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load any checkpoint that predicts words, with the scorer of its kind."""
        address = TEXT_SCORERS.get(opened.word_architecture)
        scorer = super().build(opened, loading)
        if address is None:
            return scorer
        kind: type[Self] = load_object(address)
        return kind(scorer.loaded, scorer.engine)

    def list_queries(self, pieces: Sequence[int]) -> Iterator[Query]:
        """Yield the queries that score a text."""
        return ask_masked(pieces, self.loaded.tokenizer, self.loaded.max_length)

    def encode_window(self, inputs: list[NamedInput]) -> list[ScorableText]:
        """Tokenize texts, and list their queries."""
        tokenizer, encoded = self.loaded.tokenizer, []
        pieces = tokenizer.piece_ids([named.value for named in inputs])
        for named, ids in zip(inputs, pieces, strict=True):
            queries = list(self.list_queries(ids))
            if not queries:
                raise InputError(f"{named.name} is empty; a text must have at least one word")
            num_tokens = sum(len(query.labels) for query in queries)
            num_unknown = ids.count(tokenizer.unk_id)
            encoded.append(ScorableText(named.value, num_tokens, num_unknown, queries))
        return encoded

    def count(self, encoded: Sequence[ScorableText], computed: object = None) -> TextCounts:
        """Count texts, and the tokens of all queries."""
        num_tokens = sum(len(query) for text in encoded for query in text.queries)
        return TextCounts(texts=len(encoded), tokens=num_tokens)

    def compute_window(self, encoded: Sequence[ScorableText]) -> list[float]:
        """Compute the log probability of each query of all texts."""
        return super().compute_window([query for text in encoded for query in text.queries])

    def decode_window(
        self, encoded: Sequence[ScorableText], computed: Iterable[float]
    ) -> Iterator[TextScore]:
        """Add the log probabilities of each text's queries."""
        logs = iter(computed)
        for one in encoded:
            total = math.fsum(next(logs) for _ in one.queries)
            yield TextScore(one.text, one.num_tokens, one.num_unknown, total)

    def compute_batch(self, batch: Sequence[Query]) -> list[float]:
        """Return the sum of the log probabilities of each query's labels."""
        mask_id = self.loaded.tokenizer.mask_id
        ids = PackedIds.from_single([query.ids(mask_id) for query in batch])
        places = np.array(
            [
                start + place
                for start, query in zip(ids.first_tokens.tolist(), batch, strict=True)
                for place in query.places
            ]
        )
        labels, logs = iter(chain.from_iterable(query.labels for query in batch)), []
        for scores in self.engine.score_words(ids, places):
            expected = [next(labels) for _ in scores]
            logs.append(scores[np.arange(len(scores)), expected] - log_sum_exp(scores))
        all_logs = np.concatenate(logs).astype(np.float64)
        check_finite(all_logs, "the model's scores")
        stops = np.cumsum([len(query.places) for query in batch])[:-1]
        return [float(each.sum()) for each in np.split(all_logs, stops)]
