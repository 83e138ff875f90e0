"""How well blanks are filled without a model: what a trained one has to beat.

Two guessers that have only counted the training text: one always says its most frequent token, the
other looks at the two tokens beside the blank. Both are asked at the very positions that the model
is asked at, and see the same corrupted input.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

TokenIds = NDArray[Any]


@dataclass(frozen=True)
class GuessTable:
    """For each context that was seen, the token that occurred in it most often.

    Attributes:
        contexts: the contexts as numbers, rising.
        guesses: the token for each context; of equally frequent ones that with the lowest id.
    """

    contexts: NDArray[np.int64]
    guesses: NDArray[np.int64]

    @classmethod
    def count(cls, contexts: NDArray[np.int64], tokens: TokenIds, vocab_size: int) -> Self:
        """Count tokens by context; equal lengths, contexts below 2⁶³ / vocab_size."""
        keys, counts = np.unique(contexts * vocab_size + tokens, return_counts=True)
        key_contexts = keys // vocab_size
        order = np.lexsort((-counts, key_contexts))  # stable, so that lower ids stay in front
        found, first = np.unique(key_contexts[order], return_index=True)
        return cls(contexts=found, guesses=keys[order][first] % vocab_size)

    def look_up(self, contexts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The guess for each context, −1 where it was never seen."""
        if not self.contexts.size:
            return np.full(contexts.shape, -1, dtype=np.int64)
        places = np.searchsorted(self.contexts, contexts).clip(max=self.contexts.size - 1)
        return np.where(self.contexts[places] == contexts, self.guesses[places], -1)


@dataclass(frozen=True)
class NeighborGuesser:
    """Guesses a token from the two beside it, else from the left one, else from the right one."""

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
        """Count a training text.

        Neighbors inside a document count as they are, also across sentences, as they do within a
        segment. Each sentence's ends also count beside a border, as at a segment's ends.

        Args:
            tokens: ids of the whole text, `[num_tokens]`.
            sentence_offsets: where each sentence begins in `tokens`, and the end of the last one.
            document_offsets: where each document begins in `tokens`, and the end of the last one.
            border_id: the token that the input shows where a segment ends.
            vocab_size: all ids are below it.
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
        """The token for each pair of neighbors, or `otherwise` where neither is known."""
        left, right = left.astype(np.int64), right.astype(np.int64)
        guesses = self.both.look_up(left * self.vocab_size + right)
        guesses = np.where(guesses < 0, self.left.look_up(left), guesses)
        guesses = np.where(guesses < 0, self.right.look_up(right), guesses)
        return np.where(guesses < 0, otherwise, guesses)


def _triples(tokens: NDArray[np.int64], offsets: TokenIds, border_id: int) -> NDArray[np.int64]:
    """Left neighbor, token, right neighbor, `[3, num_tokens]`; pieces stand between borders."""
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
    """The tokens beside some positions, as the corrupted input shows them.

    Args:
        input_ids: sequences end to end, each from [CLS] to [SEP], so that a maskable position
            always has neighbors of its own sequence; [num_tokens].
        positions: indices into `input_ids`.
        cls_id: taken for `sep_id`, since both are borders.
        sep_id: the border.
    """
    ids = np.where(input_ids == cls_id, sep_id, input_ids).astype(np.int64)
    return ids[positions - 1], ids[positions + 1]
