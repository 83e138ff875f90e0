"""Fill the blanks: the likeliest words where a text says [MASK]."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, overload

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import InputError
from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.tokenization.encoding import Encoding

MASK = "[MASK]"


@dataclass(frozen=True)
class Candidate:
    """One word for one blank.

    Attributes:
        token: the vocabulary's entry; a piece that goes on with the word before begins with ##.
        token_id: its id.
        probability: among all entries of the vocabulary, from 0 to 1.
    """

    token: str
    token_id: int
    probability: float


@dataclass(frozen=True)
class FilledText:
    """What a model puts into the blanks of one text.

    Attributes:
        text: as it was given.
        blanks: for each [MASK], candidates, the likeliest first.
        filled: the text with the likeliest word in each blank.
    """

    text: str
    blanks: list[list[Candidate]]
    filled: str


@dataclass(frozen=True)
class FillMask:
    """Fills blanks.

    Examples:
        >>> fill = FillMask.load("run/")  # doctest: +SKIP
        >>> fill("She opened the [MASK].").blanks[0][0].token  # doctest: +SKIP
        'door'
    """

    loaded: LoadedModel[BertForMaskedLM | BertForPreTraining]

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", *, revision: str | None = None) -> Self:
        """Load any checkpoint with a masked-LM head.

        Arguments and errors are those of `LoadedModel.load`.
        """
        return cls(LoadedModel.load(BertForMaskedLM, path, device, revision=revision))

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
        """Fill the blanks of one text, or of several.

        Args:
            text: each with at least one `[MASK]`.
            top_k: candidates of each blank.
            targets: only these words are candidates; probabilities stay those among all words.
            names: what errors call the texts; by default text 1, text 2, …

        Raises:
            InputError: a text has no [MASK] or is too long, there is no target or one that isn't in
                the vocabulary, or names and texts aren't as many.
        """
        texts = [text] if isinstance(text, str) else text
        if names is None:
            names = [f"text {number}" for number in range(1, len(texts) + 1)]
        if len(names) != len(texts):
            raise InputError(f"expected as many names as texts ({len(texts)}), got {len(names)}")
        encodings = [self._encode(name, one) for name, one in zip(names, texts, strict=True)]
        filled = self._fill(texts, encodings, top_k, self._target_ids(targets))
        return filled[0] if isinstance(text, str) else filled

    def _fill(
        self,
        texts: Sequence[str],
        encodings: Sequence[Encoding],
        top_k: int,
        target_ids: list[int] | None,
    ) -> list[FilledText]:
        if top_k < 1:
            raise InputError(f"top_k must be at least 1, and is {top_k}")
        results: dict[int, FilledText] = {}
        for indices, batch in self.loaded.batches(encodings):
            positions = torch.nonzero(batch.input_ids == self.loaded.tokenizer.mask_id)[:, 0]
            with torch.inference_mode():
                scores = self.loaded.model.word_scores(batch, positions)
            rows = list(scores.float().softmax(dim=-1).cpu())
            for index in indices:
                num_blanks = encodings[index].ids.count(self.loaded.tokenizer.mask_id)
                blanks = [self._candidates(row, top_k, target_ids) for row in rows[:num_blanks]]
                rows = rows[num_blanks:]
                results[index] = FilledText(
                    text=texts[index],
                    blanks=blanks,
                    filled=fill_in(texts[index], encodings[index], blanks),
                )
        return [results[index] for index in range(len(texts))]

    def _encode(self, name: str, text: str) -> Encoding:
        name = f"{name} ({text[:40]!r})"
        encoding = self.loaded.encode(text, None, name=name, read_mask=True)
        if self.loaded.tokenizer.mask_id not in encoding.ids:
            raise InputError(f"{name} has no {MASK}; write {MASK} where a word is to be filled in")
        return encoding

    def _target_ids(self, targets: Sequence[str] | None) -> list[int] | None:
        if targets is not None and not targets:
            raise InputError(
                "targets has no word; name at least one, or leave it out for all words"
            )
        return None if targets is None else [self._target_id(word) for word in targets]

    def _target_id(self, word: str) -> int:
        """The id of a word that must be one entry of the vocabulary."""
        tokenizer = self.loaded.tokenizer
        pieces = tokenizer.piece_ids([word])[0]
        exact = tokenizer.token_to_id(word)
        if exact is not None:
            return exact
        if len(pieces) != 1 or pieces[0] == tokenizer.unk_id:
            shown = " ".join(tokenizer.vocabulary[piece] for piece in pieces) or "nothing"
            raise InputError(
                f"the target {word!r} isn't one entry of the vocabulary (it becomes {shown})"
            )
        return pieces[0]

    def _candidates(
        self, probabilities: Float[Tensor, " vocabulary"], top_k: int, target_ids: list[int] | None
    ) -> list[Candidate]:
        """The likeliest entries, or the targets, the likeliest first."""
        vocabulary = self.loaded.tokenizer.vocabulary
        probabilities = probabilities[: len(vocabulary)]
        ids = torch.arange(len(vocabulary)) if target_ids is None else torch.tensor(target_ids)
        best = probabilities[ids].topk(min(top_k, len(ids)))
        return [
            Candidate(vocabulary[token_id], token_id, probability)
            for token_id, probability in zip(
                ids[best.indices].tolist(), best.values.tolist(), strict=True
            )
        ]


def fill_in(text: str, encoding: Encoding, blanks: Sequence[Sequence[Candidate]]) -> str:
    """The text with the likeliest candidate in place of each [MASK]."""
    spans = [
        span for token, span in zip(encoding.tokens, encoding.offsets, strict=True) if token == MASK
    ]
    pieces, end = [], 0
    for (start, stop), candidates in zip(spans, blanks, strict=True):
        pieces += [text[end:start], candidates[0].token.removeprefix("##")]
        end = stop
    return "".join([*pieces, text[end:]])
