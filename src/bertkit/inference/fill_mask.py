"""Masked-word prediction: the likeliest vocabulary entries for each [MASK] in a text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError
from bertkit.inference.engines.engine import check_finite
from bertkit.inference.numbers import find_highest, log_sum_exp
from bertkit.inference.pipeline import SAMPLES, EncoderPipeline, NamedInput
from bertkit.inference.settings import FillOptions
from bertkit.inference.stream import TextCounts
from bertkit.models.bert.architectures import MASKED_LM
from bertkit.nn.packed_ids import PackedIds
from bertkit.reports.notebook import Row, Tabular

# Ids and probabilities of the entries for each [MASK] of a text, the likeliest first.
Blanks: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]  # `[blanks, top_k]`


@dataclass(frozen=True)
class Candidate(Tabular):
    """A candidate for a [MASK]."""

    token: str  # pieces that continue a word begin with ##
    token_id: int
    probability: float  # among all vocabulary entries


@dataclass(frozen=True)
class FilledText(Tabular):
    """A text with predictions for its [MASK] tokens."""

    text: str
    blanks: list[list[Candidate]]  # candidates for each [MASK], the likeliest first
    filled: str  # the text with the likeliest candidate in place of each [MASK]
    mask: str = "[MASK]"  # how the mask is written in the text; RoBERTa's is <mask>

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each candidate of each [MASK]."""
        return [
            {"blank": number, **one.as_row()}
            for number, candidates in enumerate(self.blanks, start=1)
            for one in candidates
        ]


@dataclass(frozen=True)
class MaskedText:
    """A text with its token ids."""

    text: str
    ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class FillMask(EncoderPipeline[str, FilledText]):
    """Predicts masked words.

    A call with a text returns a `FilledText`; a call with a list, a list. `top_k`, by default 5, is
    the number of candidates for each [MASK]; `targets` restricts them to these words.

    Examples:
        >>> fill = FillMask.load("run/")  # doctest: +SKIP
        >>> fill("She opened the [MASK].", top_k=3).blanks[0][0].token  # doctest: +SKIP
        'door'

    Attributes:
        loaded: what the model reads, with its tokenizer.
        engine: computes the model, which has a masked-LM head.
        options: `top_k` and `targets`.
    """

    options: FillOptions = field(default_factory=FillOptions)

    architecture = MASKED_LM

    def warm_up(self) -> None:
        """Fill two texts."""
        self([f"{text} {self.loaded.tokenizer.mask}" for text in SAMPLES])

    def encode_window(self, inputs: list[NamedInput]) -> list[MaskedText]:
        """Return each text with its token ids, not truncated; no word extends over a [MASK]."""
        tokenizer, encoded = self.loaded.tokenizer, []
        mask = tokenizer.mask
        pieces = tokenizer.piece_ids([named.value for named in inputs], read_mask=True)
        for named, own in zip(inputs, pieces, strict=True):
            ids, _ = tokenizer.join(own)
            name = f"{named.name} ({named.value[:40]!r})"
            self.loaded.check_text(name, len(ids), is_empty=not own)
            if tokenizer.mask_id not in own:
                raise InputError(
                    f"{name} has no {mask}; put {mask} in place of the word to predict"
                )
            encoded.append(MaskedText(named.value, ids))
        return encoded

    def count(self, encoded: Sequence[MaskedText], computed: object = None) -> TextCounts:
        """Count texts and their tokens; a [MASK] isn't a token of the text."""
        ids = list(chain.from_iterable(one.ids for one in encoded))
        tokenizer = self.loaded.tokenizer
        num_special = tokenizer.num_special() * len(encoded) + ids.count(tokenizer.mask_id)
        return TextCounts(
            texts=len(encoded),
            tokens=len(ids),
            text_tokens=len(ids) - num_special,
            unknown_tokens=ids.count(tokenizer.unk_id),
        )

    def compute_batch(self, batch: Sequence[MaskedText]) -> Iterable[Blanks]:
        """Return ids and probabilities of the likeliest entries for the [MASK]s of each text."""
        ids = PackedIds.from_single([one.ids for one in batch])
        mask_id, found = self.loaded.tokenizer.mask_id, []
        for scores in self.engine.score_words(ids, np.flatnonzero(ids.input_ids == mask_id)):
            check_finite(scores, "the model's scores")
            best = self._find_best(scores)
            chosen = np.take_along_axis(scores, best, axis=1)
            found.append((best, np.exp(chosen - log_sum_exp(scores)[:, None])))
        stops = np.cumsum([one.ids.count(mask_id) for one in batch])[:-1]
        parts = (np.split(np.concatenate(part), stops) for part in zip(*found, strict=True))
        return zip(*parts, strict=True)

    def _find_best(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Return the ids of the likeliest entries, or targets, for each [MASK].

        The scores are `[blanks, vocabulary]`, and the ids `[blanks, top_k]`.
        """
        targets = self.options.targets
        if targets is None:
            # A model's vocab_size may exceed the number of entries in its vocabulary.
            return find_highest(scores[:, : self.loaded.tokenizer.vocab_size], self.options.top_k)
        ids = np.array(list(map(self._target_id, targets)))
        return np.take(ids, find_highest(scores[:, ids], self.options.top_k))

    def decode_window(
        self, encoded: Sequence[MaskedText], computed: Sequence[Blanks]
    ) -> Iterator[FilledText]:
        """Name the candidates of each [MASK]."""
        tokenizer = self.loaded.tokenizer
        describe = tokenizer.describe_piece
        for one, best in zip(encoded, computed, strict=True):
            rows = zip(*(part.tolist() for part in best), strict=True)  # of ids, of probabilities
            blanks = [
                [Candidate(describe(id_), id_, share) for id_, share in zip(*row, strict=True)]
                for row in rows
            ]
            first, *others = one.text.split(tokenizer.mask)
            words = [candidates[0].token.removeprefix("##") for candidates in blanks]
            pairs = chain.from_iterable(zip(words, others, strict=True))
            yield FilledText(one.text, blanks, "".join([first, *pairs]), tokenizer.mask)

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options, if the vocabulary has their words."""
        changed = super().change(changes)
        for word in changed.options.targets or ():
            self._target_id(word)
        return changed

    def _target_id(self, word: str) -> int:
        """Return the id of a target, which must be a single vocabulary entry."""
        tokenizer = self.loaded.tokenizer
        entry = tokenizer.find_entry(word)
        if entry is None:
            pieces = tokenizer.word_piece_ids([word])[0]
            shown = " ".join(map(tokenizer.describe_piece, pieces)) or "none"
            raise InputError(
                f"the target {word!r} isn't a single vocabulary entry (tokens: {shown})"
            )
        return entry
