"""Queries: the sequences to run through a model to score a text, and the tokens that each predicts.

A left-to-right model predicts all tokens of a part of a text at once. A bidirectional model sees
the whole text but the token that it predicts, so there is one query per token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Query:
    """A sequence, and the tokens that are predicted from its hidden states.

    Attributes:
        sequence: token ids with their special tokens; may be shared by many queries.
        masked: indices of the sequence whose tokens are replaced by [MASK].
        places: indices of the hidden states that predict.
        labels: the token id that each of them should predict.
    """

    sequence: Sequence[int]
    masked: range
    places: range
    labels: Sequence[int]

    def ids(self, mask_id: int) -> list[int]:
        """Return the sequence with its [MASK]s."""
        ids = list(self.sequence)
        ids[self.masked.start : self.masked.stop] = [mask_id] * len(self.masked)
        return ids


def ask_left_to_right(pieces: Sequence[int], tokenizer: Tokenizer, limit: int) -> Iterator[Query]:
    """Yield the queries that together predict each token of a text, and its end, once.

    A text that is too long is split into overlapping parts: in every part but the first, the first
    half is context.

    Args:
        pieces: the text's token ids.
        tokenizer: has the special tokens.
        limit: maximum length of a sequence.
    """
    tokens = [*pieces, tokenizer.sep_id]
    room = limit - 1
    begin, scored = 0, 0  # of the part, and the tokens scored so far
    while scored < len(tokens):
        part = tokens[begin : begin + room]
        first = scored - begin
        places = range(first, len(part))  # [CLS] comes first: each state predicts what follows it
        yield Query([tokenizer.cls_id, *part], range(0), places, part[first:])
        scored = begin + len(part)
        begin = scored - room // 2


def ask_masked(pieces: Sequence[int], tokenizer: Tokenizer, limit: int) -> Iterator[Query]:
    """Yield one query per token of a text: it is masked, and so are later pieces of its word.

    Without that, the pieces of a rare word would give each other away. A text that is too long is
    split into overlapping parts, and a token is predicted in the part where it is near the middle.

    Source: Salazar et al. 2020, "Masked Language Model Scoring" (1910.14659); within words Kauf and
    Ivanova 2023, "A Better Way to Do Masked Language Model Scoring" (2305.10588).

    Args:
        pieces: the text's token ids.
        tokenizer: has the special tokens.
        limit: maximum length of a sequence.
    """
    room = limit - 2
    step = max(1, room // 2)
    part_begin, sequence = -1, [0]
    for index, word_end in enumerate(find_word_ends(pieces, tokenizer)):
        wanted = max(0, index - room // 4) // step * step
        begin = min(wanted, max(0, len(pieces) - room))
        if begin != part_begin:
            part = pieces[begin : begin + room]
            part_begin, sequence = begin, [tokenizer.cls_id, *part, tokenizer.sep_id]
        place = 1 + index - begin
        masked = range(place, 1 + min(word_end - begin, room))
        yield Query(sequence, masked, range(place, place + 1), pieces[index : index + 1])


def find_word_ends(pieces: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """Return for each piece the index after the last piece of its word."""
    ends, end = [], len(pieces)
    for index in reversed(range(len(pieces))):
        ends.append(end)
        if not tokenizer.is_continuation[pieces[index]]:
            end = index
    return ends[::-1]
