"""Perplexity of texts under a left-to-right model."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self, overload

import torch

from bertkit.base.errors import NonFiniteError
from bertkit.generation.causal_model import CausalModel, load_causal
from bertkit.inference.named_texts import NamedText, name_texts
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.metrics.perplexity import find_perplexity
from bertkit.nn.batching import plan_batches
from bertkit.nn.packing import PackedBatch

TOKENS_PER_BATCH = 1024
TOKENS_AT_A_TIME = 128  # limits the largest tensor: the vocabulary scores of each token


@dataclass(frozen=True)
class TextPerplexity:
    """The log probability and perplexity of one text.

    Attributes:
        text: the text as given.
        num_tokens: tokens that were predicted: the text's pieces and the end token.
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


@dataclass(frozen=True)
class Part:
    """A part of a text that fits into the model.

    Attributes:
        ids: [CLS] and consecutive tokens of the text.
        first: index of the first token that is scored; the tokens before it are context.
    """

    ids: list[int]
    first: int


@dataclass(frozen=True)
class ScoredText:
    """A text split into parts that fit into the model."""

    text: str
    num_tokens: int
    num_unknown: int
    parts: list[Part]


@dataclass(frozen=True)
class Perplexity:
    """Computes the perplexity of texts.

    Attributes:
        loaded: the model and its tokenizer.
    """

    loaded: CausalModel

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", *, revision: str | None = None) -> Self:
        """Load a left-to-right model; arguments and errors are those of `load_causal`."""
        return cls(load_causal(path, device, revision=revision))

    @overload
    def __call__(self, text: str) -> TextPerplexity: ...

    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[TextPerplexity]: ...

    def __call__(
        self, text: str | list[str] | tuple[str, ...]
    ) -> TextPerplexity | list[TextPerplexity]:
        """Score one text, or several, of any length; errors as in `stream`."""
        found = list(self.stream([text] if isinstance(text, str) else text))
        return found[0] if isinstance(text, str) else found

    def stream(self, texts: Iterable[str | NamedText]) -> Iterator[TextPerplexity]:
        """Score any number of texts, in bounded memory.

        Yields:
            One result per text, in input order.

        Raises:
            InputError: an input isn't a string.
            NonFiniteError: the model's scores aren't finite.
        """
        encode = partial(encode_texts, self.loaded)
        for window in encode_ahead(cut_windows(name_texts(texts)), encode):
            parts = [part for encoded in window for part in encoded.parts]
            logs = iter(self._measure(parts))
            for one in window:
                total = math.fsum(next(logs) for _ in one.parts)
                yield TextPerplexity(one.text, one.num_tokens, one.num_unknown, total)

    def _measure(self, parts: Sequence[Part]) -> list[float]:
        """Return the log probability of each part's scored tokens."""
        found: dict[int, float] = {}
        for chosen in plan_batches([len(part.ids) for part in parts], TOKENS_PER_BATCH):
            found.update(zip(chosen, self._score_batch([parts[i] for i in chosen]), strict=True))
        return [found[index] for index in range(len(parts))]

    @torch.inference_mode()
    def _score_batch(self, parts: Sequence[Part]) -> list[float]:
        model = self.loaded.model
        device = model.encoder.embeddings.word.weight.device
        batch = PackedBatch.from_single([part.ids for part in parts]).to(device)
        starts = batch.first_tokens.tolist()
        counted = [
            range(start + part.first, start + len(part.ids))
            for start, part in zip(starts, parts, strict=True)
        ]
        places = torch.tensor(list(chain.from_iterable(counted)), device=device)
        hidden = model.encoder(batch).index_select(0, places - 1)
        logs = []
        pieces = zip(
            torch.split(hidden, TOKENS_AT_A_TIME),
            torch.split(batch.input_ids[places], TOKENS_AT_A_TIME),
            strict=True,
        )
        for tokens, labels in pieces:
            scores = model.score_words(tokens).float()
            logs.append(scores.gather(1, labels[:, None])[:, 0] - scores.logsumexp(dim=-1))
        all_logs = torch.cat(logs).double()
        if not all_logs.isfinite().all():
            raise NonFiniteError("the model's scores aren't finite; its weights may be damaged")
        by_part = torch.split(all_logs, [len(each) for each in counted])
        return [float(each.sum()) for each in by_part]


def encode_texts(loaded: CausalModel, window: Sequence[NamedText]) -> list[ScoredText]:
    """Tokenize texts, add [CLS] and [SEP], and split them into parts that fit into the model."""
    tokenizer = loaded.tokenizer
    pieces = tokenizer.piece_ids([named.text for named in window])
    return [
        ScoredText(
            named.text,
            len(ids) + 1,
            ids.count(tokenizer.unk_id),
            cut_parts([*ids, tokenizer.sep_id], tokenizer.cls_id, loaded.max_length),
        )
        for named, ids in zip(window, pieces, strict=True)
    ]


def cut_parts(tokens: Sequence[int], start_id: int, limit: int) -> list[Part]:
    """Split a text into overlapping parts that together score each token once.

    In every part but the first, the first half is context for the tokens that are scored.

    Args:
        tokens: the text's token ids.
        start_id: the first id of each part.
        limit: the maximum length of a part.
    """
    room = limit - 1
    parts = [Part([start_id, *tokens[:room]], 1)]
    step = max(1, room - room // 2)
    for begin in range(room, len(tokens), step):
        first = begin - room // 2
        parts.append(Part([start_id, *tokens[first : begin + step]], 1 + begin - first))
    return parts
