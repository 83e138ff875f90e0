"""Masked-word prediction: the likeliest vocabulary entries for each [MASK] in a text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Self, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import InputError
from bertkit.inference.engines.choice import choose_engine
from bertkit.inference.engines.engine import Engine
from bertkit.inference.loading import LoadedModel, Model
from bertkit.inference.predictor import NamedText, name_texts
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.reports.notebook import ResultList, Row, Tabular

MASK = "[MASK]"


def encode_masked(
    loaded: LoadedModel[Model], window: Sequence[NamedText]
) -> list[tuple[str, list[int]]]:
    """Return each text with its token ids, not truncated; parts between [MASK]s are separate."""
    tokenizer = loaded.tokenizer
    parts = [named.text.split(MASK) for named in window]
    pieces = iter(tokenizer.piece_ids(chain.from_iterable(parts)))
    encoded = []
    for named, own_parts in zip(window, parts, strict=True):
        ids = [tokenizer.cls_id]
        for _ in own_parts:
            ids += [*next(pieces), tokenizer.mask_id]
        ids[-1] = tokenizer.sep_id  # no [MASK] follows the last part
        name = f"{named.name} ({named.text[:40]!r})"
        loaded.check_text(name, len(ids), is_empty=len(ids) == 2)
        if len(own_parts) == 1:
            raise InputError(f"{name} has no {MASK}; put {MASK} in place of the word to predict")
        encoded.append((named.text, ids))
    return encoded


BLANKS_AT_A_TIME = 128  # logits over the whole vocabulary are the largest tensor here


@dataclass(frozen=True)
class Candidate(Tabular):
    """A candidate for a [MASK].

    Attributes:
        token: the vocabulary entry; pieces that continue a word begin with ##.
        token_id: its id.
        probability: probability among all vocabulary entries, from 0 to 1.
    """

    token: str
    token_id: int
    probability: float


@dataclass(frozen=True)
class FilledText(Tabular):
    """A text with predictions for its [MASK] tokens.

    Attributes:
        text: the input text.
        blanks: candidates for each [MASK], the likeliest first.
        filled: the text with the likeliest candidate in place of each [MASK].
    """

    text: str
    blanks: list[list[Candidate]]
    filled: str

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each candidate of each [MASK]."""
        return [
            {"blank": number, **one.as_row()}
            for number, candidates in enumerate(self.blanks, start=1)
            for one in candidates
        ]


@dataclass(frozen=True)
class FillMask:
    """Predicts masked words.

    Examples:
        >>> fill = FillMask.load("run/")  # doctest: +SKIP
        >>> fill("She opened the [MASK].").blanks[0][0].token  # doctest: +SKIP
        'door'

    Attributes:
        loaded: the model and its tokenizer.
        engine_name: the runtime of the encoder, as in `choose_engine`.
        precision: of the encoder's weights and matrix products, as in `choose_engine`.
    """

    loaded: LoadedModel[BertForMaskedLM | BertForPreTraining]
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
        """Load any checkpoint with a masked-LM head.

        Arguments and errors are those of `LoadedModel.load` and `choose_engine`.
        """
        return cls(
            LoadedModel.load(BertForMaskedLM, path, device, revision=revision), engine, precision
        )

    @overload
    def __call__(
        self, text: str, *, top_k: int = 5, targets: Sequence[str] | None = None
    ) -> FilledText: ...

    @overload
    def __call__(
        self,
        text: list[str] | tuple[str, ...],
        *,
        top_k: int = 5,
        targets: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> list[FilledText]: ...

    def __call__(
        self,
        text: str | list[str] | tuple[str, ...],
        *,
        top_k: int = 5,
        targets: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> FilledText | list[FilledText]:
        """Predict the masked words of one text, or of several.

        Args:
            text: a text or texts, each with at least one `[MASK]`.
            top_k: number of candidates for each [MASK].
            targets: restrict candidates to these words; probabilities stay those among all words.
            names: names of the texts in error messages; by default text 1, text 2, …
        """
        texts = [text] if isinstance(text, str) else text
        if names is not None and len(names) != len(texts):
            raise InputError(f"expected as many names as texts ({len(texts)}), got {len(names)}")
        named: Iterable[str | NamedText] = texts if names is None else map(NamedText, names, texts)
        filled = ResultList(self.stream(named, top_k=top_k, targets=targets))
        return filled[0] if isinstance(text, str) else filled

    def stream(
        self,
        texts: Iterable[str | NamedText],
        *,
        top_k: int = 5,
        targets: Sequence[str] | None = None,
    ) -> Iterator[FilledText]:
        """Predict the masked words of any number of texts, in bounded memory.

        Args:
            texts: texts, each with at least one `[MASK]`; read some thousands ahead.
            top_k: number of candidates for each [MASK].
            targets: as in `__call__`.

        Yields:
            One result per text, in order.

        Raises:
            InputError: as in `__call__`; an invalid text raises when its turn comes.
        """
        if top_k < 1:
            raise InputError(f"top_k must be at least 1, and is {top_k}")
        target_ids = self._target_ids(targets)
        windows = encode_ahead(cut_windows(name_texts(texts)), partial(encode_masked, self.loaded))
        return chain.from_iterable(self._fill(window, top_k, target_ids) for window in windows)

    @cached_property
    def _engine(self) -> Engine:
        return choose_engine(self.engine_name, self.loaded.model, precision=self.precision)

    def _fill(
        self,
        window: list[tuple[str, list[int]]],
        top_k: int,
        target_ids: Int[Tensor, " targets"] | None,
    ) -> Iterator[FilledText]:
        best: dict[int, tuple[Tensor, Tensor]] = {}
        lengths = [len(ids) for _, ids in window]
        for chosen in plan_batches(lengths, self._engine.tokens_per_batch):
            sequences = [window[index][1] for index in chosen]
            found = self._find_best(sequences, top_k, target_ids)
            num_blanks = [ids.count(self.loaded.tokenizer.mask_id) for ids in sequences]
            parts = zip(*(torch.split(part, num_blanks) for part in found), strict=True)
            best.update(zip(chosen, parts, strict=True))
        for index, (text, _) in enumerate(window):
            blanks = self._name_candidates(*best.pop(index))
            yield FilledText(text, blanks, fill_in(text, blanks))

    @torch.inference_mode()
    def _find_best(
        self, sequences: list[list[int]], top_k: int, target_ids: Int[Tensor, " targets"] | None
    ) -> tuple[Int[Tensor, "blanks top_k"], Float[Tensor, "blanks top_k"]]:
        """Return ids and probabilities of the likeliest entries for all [MASK]s of a batch."""
        batch, model = PackedBatch.from_single(sequences), self.loaded.model
        places = (batch.input_ids == self.loaded.tokenizer.mask_id).nonzero()[:, 0]
        (tokens,) = self._engine(batch)
        found = []
        for masked in torch.split(tokens[places.to(tokens.device)], BLANKS_AT_A_TIME):
            scores = model.score_words(masked)
            # A model's vocab_size may exceed the number of entries in its vocabulary.
            shares = scores.softmax(dim=-1)[:, : self.loaded.tokenizer.vocab_size]
            if target_ids is not None:
                shares = shares[:, target_ids]
            found.append(shares.topk(min(top_k, shares.shape[1])))
        ids = torch.cat([best.indices.cpu() for best in found])
        shares = torch.cat([best.values.cpu() for best in found])
        return ids if target_ids is None else target_ids[ids], shares

    def _name_candidates(
        self, ids: Int[Tensor, "blanks top_k"], shares: Float[Tensor, "blanks top_k"]
    ) -> list[list[Candidate]]:
        vocabulary = self.loaded.tokenizer.vocabulary
        rows = zip(ids.tolist(), shares.tolist(), strict=True)
        return [
            [Candidate(vocabulary[id_], id_, share) for id_, share in zip(*row, strict=True)]
            for row in rows
        ]

    def _target_ids(self, targets: Sequence[str] | None) -> Int[Tensor, " targets"] | None:
        """Return the ids that candidates are restricted to; None for all entries."""
        if targets is None:
            return None
        if not targets:
            raise InputError(
                "targets is empty; give at least one word, or omit it to rank all words"
            )
        return torch.tensor([self._target_id(word) for word in targets])

    def _target_id(self, word: str) -> int:
        """Return the id of a target, which must be a single vocabulary entry."""
        tokenizer = self.loaded.tokenizer
        pieces = tokenizer.piece_ids([word])[0]
        exact = tokenizer.token_to_id(word)
        if exact is not None:
            return exact
        if len(pieces) != 1 or pieces[0] == tokenizer.unk_id:
            shown = " ".join(tokenizer.vocabulary[piece] for piece in pieces) or "none"
            raise InputError(
                f"the target {word!r} isn't a single vocabulary entry (tokens: {shown})"
            )
        return pieces[0]


def fill_in(text: str, blanks: Sequence[Sequence[Candidate]]) -> str:
    """Replace each [MASK] in a text by its likeliest candidate."""
    first, *others = text.split(MASK)
    words = [candidates[0].token.removeprefix("##") for candidates in blanks]
    return "".join([first, *chain.from_iterable(zip(words, others, strict=True))])
