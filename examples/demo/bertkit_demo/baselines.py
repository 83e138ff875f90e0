"""Baselines for masked-token prediction, which a trained model has to beat.

Both use only counts over the training text: one always predicts its most frequent token, the other
predicts from the two tokens beside the mask. Both are evaluated on the same masked positions and
the same corrupted input as the model.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

TokenIds = NDArray[Any]


@dataclass(frozen=True)
class GuessTable:
    """The most frequent token for each context in the training text.

    Attributes:
        contexts: the contexts as numbers, ascending.
        guesses: the token for each context; ties go to the lowest id.
    """

    contexts: NDArray[np.int64]
    guesses: NDArray[np.int64]

    @classmethod
    def count(cls, contexts: NDArray[np.int64], tokens: TokenIds, vocab_size: int) -> Self:
        """Count tokens by context; equal lengths, contexts below 2⁶³ / vocab_size."""
        keys, counts = np.unique(contexts * vocab_size + tokens, return_counts=True)
        key_contexts = keys // vocab_size
        order = np.lexsort((-counts, key_contexts))  # stable, so lower ids stay first
        found, first = np.unique(key_contexts[order], return_index=True)
        return cls(contexts=found, guesses=keys[order][first] % vocab_size)

    def look_up(self, contexts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the guess for each context, −1 if it was never seen."""
        if not self.contexts.size:
            return np.full(contexts.shape, -1, dtype=np.int64)
        places = np.searchsorted(self.contexts, contexts).clip(max=self.contexts.size - 1)
        return np.where(self.contexts[places] == contexts, self.guesses[places], -1)


@dataclass(frozen=True)
class NeighborGuesser:
    """Predicts a token from both neighbors, else from the left one, else from the right one."""

    vocab_size: int
    both: GuessTable
    left: GuessTable
    right: GuessTable

    @classmethod
    def count(
        cls,
        tokens: TokenIds,
        sentence_offsets: TokenIds,
        document_offsets: TokenIds,
        *,
        border_id: int,
        vocab_size: int,
    ) -> Self:
        """Count neighbors in a training text.

        Within a document neighbors count across sentences too, as they appear in a segment. The
        first and last token of each sentence also count next to a border, as at a segment's ends.

        Args:
            tokens: ids of the whole text, `[num_tokens]`.
            sentence_offsets: start of each sentence in `tokens`, and the end of the last one.
            document_offsets: start of each document in `tokens`, and the end of the last one.
            border_id: the token at a segment's ends in the input.
            vocab_size: upper bound of the ids, exclusive.
        """
        stream = tokens.astype(np.int64)
        within = _triples(stream, document_offsets, border_id)
        beside = _triples(stream, sentence_offsets, border_id)
        triples = np.concatenate(
            [within[:, ~_has_border(within, border_id)], beside[:, _has_border(beside, border_id)]],
            axis=1,
        )
        left, middle, right = triples
        return cls(
            vocab_size=vocab_size,
            both=GuessTable.count(left * vocab_size + right, middle, vocab_size),
            left=GuessTable.count(left, middle, vocab_size),
            right=GuessTable.count(right, middle, vocab_size),
        )

    def guess(self, left: TokenIds, right: TokenIds, otherwise: int) -> NDArray[np.int64]:
        """Return the predicted token for each pair of neighbors; `otherwise` if none is known."""
        left, right = left.astype(np.int64), right.astype(np.int64)
        guesses = self.both.look_up(left * self.vocab_size + right)
        guesses = np.where(guesses < 0, self.left.look_up(left), guesses)
        guesses = np.where(guesses < 0, self.right.look_up(right), guesses)
        return np.where(guesses < 0, otherwise, guesses)


def _triples(tokens: NDArray[np.int64], offsets: TokenIds, border_id: int) -> NDArray[np.int64]:
    """Return left neighbor, token, right neighbor, `[3, num_tokens]`, with borders at offsets."""
    left = np.concatenate([[border_id], tokens[:-1]])
    right = np.concatenate([tokens[1:], [border_id]])
    borders = offsets[1:-1].astype(np.int64)
    left[borders] = border_id
    right[borders - 1] = border_id
    return np.stack([left, tokens, right])


def _has_border(triples: NDArray[np.int64], border_id: int) -> NDArray[np.bool_]:
    has_border: NDArray[np.bool_] = (triples[0] == border_id) | (triples[2] == border_id)
    return has_border


def neighbors(
    input_ids: TokenIds, positions: TokenIds, cls_id: int, sep_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tokens to the left and right of some positions in the corrupted input.

    Args:
        input_ids: concatenated sequences, each from [CLS] to [SEP], so that a maskable position
            always has both neighbors in its own sequence; [num_tokens].
        positions: indices into `input_ids`.
        cls_id: id of [CLS]; replaced by `sep_id`, because both are borders.
        sep_id: id of [SEP], the border.
    """
    ids = np.where(input_ids == cls_id, sep_id, input_ids).astype(np.int64)
    return ids[positions - 1], ids[positions + 1]
