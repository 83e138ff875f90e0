"""Log probabilities of texts: how likely a language model finds them.

A left-to-right model gives the log probability of a text, the sum over its tokens. A bidirectional
model gives the pseudo log-likelihood: the sum of the log probabilities of each token given all
others, which ranks texts alike, but isn't the probability of a text.

Source: Salazar et al. 2020, "Masked Language Model Scoring" (1910.14659).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Self, overload

import torch

from bertkit.base.errors import InputError, NonFiniteError
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.inference.engines.choice import choose_engine
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.inference.loading import LoadedModel
from bertkit.inference.named_texts import NamedText, name_texts
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.metrics.perplexity import find_perplexity
from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.nn.batching import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.reports.notebook import ResultList, Row, Tabular
from bertkit.scoring.queries import Query, ask_left_to_right, ask_masked

TOKENS_AT_A_TIME = 128  # limits the largest tensor: the vocabulary scores of each token
# A text has as many queries as tokens: fewer texts at a time than for other work.
WINDOW_CHARS = 1 << 14


@dataclass(frozen=True)
class TextScore(Tabular):
    """The log probability of one text.

    Attributes:
        text: the text as given.
        num_tokens: tokens that were predicted: the text's pieces and, left to right, its end.
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
class EncodedText:
    """A text and the queries that score it."""

    text: str
    num_tokens: int
    num_unknown: int
    queries: list[Query]


@dataclass(frozen=True)
class TextScorer:
    """Scores texts with a left-to-right or a bidirectional model.

    Examples:
        >>> score = TextScorer.load("run/")  # doctest: +SKIP
        >>> score("She opened the door.").log_probability  # doctest: +SKIP
        -9.4

    Attributes:
        loaded: the model and its tokenizer.
        engine_name: the runtime of the encoder, as in `choose_engine`.
        precision: of the encoder's weights and matrix products, as in `choose_engine`.
    """

    loaded: LoadedModel[BertLMHeadModel | BertForMaskedLM | BertForPreTraining]
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
        """Load a left-to-right model, or one with a masked-LM head.

        Arguments and errors are those of `LoadedModel.load` and `choose_engine`.
        """
        checkpoint = open_checkpoint(
            resolve_model(path or find_bundled("words"), revision=revision)
        )
        kind = BertLMHeadModel if checkpoint.config.get("is_decoder") is True else BertForMaskedLM
        return cls(LoadedModel.from_checkpoint(kind, checkpoint, device), engine, precision)

    @property
    def is_left_to_right(self) -> bool:
        """Whether each token is predicted from those before it only."""
        return self.loaded.model.config.is_decoder

    @overload
    def __call__(self, text: str) -> TextScore: ...

    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[TextScore]: ...

    def __call__(self, text: str | list[str] | tuple[str, ...]) -> TextScore | list[TextScore]:
        """Score one text, or several, of any length; errors as in `stream`."""
        found = ResultList(self.stream([text] if isinstance(text, str) else text))
        return found[0] if isinstance(text, str) else found

    def stream(self, texts: Iterable[str | NamedText]) -> Iterator[TextScore]:
        """Score any number of texts, in bounded memory.

        Yields:
            One result per text, in input order.

        Raises:
            InputError: an input isn't a string, or is empty.
            NonFiniteError: the model's scores aren't finite.
        """
        windows = cut_windows(name_texts(texts), most=WINDOW_CHARS)
        for window in encode_ahead(windows, partial(encode_texts, self)):
            logs = iter(self._answer([query for encoded in window for query in encoded.queries]))
            for one in window:
                total = math.fsum(next(logs) for _ in one.queries)
                yield TextScore(one.text, one.num_tokens, one.num_unknown, total)

    @cached_property
    def _engine(self) -> Engine:
        return choose_engine(self.engine_name, self.loaded.model, precision=self.precision)

    def _answer(self, queries: Sequence[Query]) -> list[float]:
        """Return the sum of the log probabilities of each query's labels."""
        found: dict[int, float] = {}
        lengths = [len(query.sequence) for query in queries]
        for chosen in plan_batches(lengths, self._engine.tokens_per_batch):
            sums = self._answer_batch([queries[index] for index in chosen])
            found.update(zip(chosen, sums, strict=True))
        return [found[index] for index in range(len(queries))]

    @torch.inference_mode()
    def _answer_batch(self, queries: Sequence[Query]) -> list[float]:
        mask_id = self.loaded.tokenizer.mask_id
        batch = PackedBatch.from_single([query.ids(mask_id) for query in queries])
        starts = batch.first_tokens.tolist()
        places = [
            start + place
            for start, query in zip(starts, queries, strict=True)
            for place in query.places
        ]
        (tokens,) = self._engine(batch)
        states = tokens[torch.tensor(places, device=tokens.device)]
        labels = torch.tensor(list(chain.from_iterable(query.labels for query in queries)))
        logs = []
        for some, expected in zip(
            torch.split(states, TOKENS_AT_A_TIME),
            torch.split(labels.to(tokens.device), TOKENS_AT_A_TIME),
            strict=True,
        ):
            scores = self.loaded.model.score_words(some).float()
            logs.append(scores.gather(1, expected[:, None])[:, 0] - scores.logsumexp(dim=-1))
        all_logs = torch.cat(logs).double()
        if not all_logs.isfinite().all():
            raise NonFiniteError("the model's scores aren't finite; its weights may be damaged")
        by_query = torch.split(all_logs, [len(query.places) for query in queries])
        return [float(each.sum()) for each in by_query]


def encode_texts(scorer: TextScorer, window: Sequence[NamedText]) -> list[EncodedText]:
    """Tokenize texts, and list their queries.

    Raises:
        InputError: a text has no token to mask.
    """
    tokenizer, limit = scorer.loaded.tokenizer, scorer.loaded.max_length
    ask = ask_left_to_right if scorer.is_left_to_right else ask_masked
    encoded = []
    for named, ids in zip(window, tokenizer.piece_ids([one.text for one in window]), strict=True):
        queries = list(ask(ids, tokenizer, limit))
        if not queries:
            raise InputError(f"{named.name} is empty; a text must have at least one word")
        num_tokens = sum(len(query.labels) for query in queries)
        num_unknown = ids.count(tokenizer.unk_id)
        encoded.append(EncodedText(named.text, num_tokens, num_unknown, queries))
    return encoded
