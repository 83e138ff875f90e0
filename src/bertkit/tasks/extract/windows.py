"""Windows of whole sentences, each sentence with its own [CLS]."""

from collections.abc import Sequence
from typing import NamedTuple

from bertkit.tasks.batch import TokenSequence
from bertkit.tokenization.tokenizer import Tokenizer

NUM_SPECIAL = 2  # [CLS] and [SEP] of each sentence


class SentenceWindows(NamedTuple):
    """An encoded text.

    Attributes:
        sequences: one, or several for a long text; `[CLS] [SEP]` for a text without a sentence.
        rows: index of each sentence's [CLS] in the tokens of all sequences.
        is_cut: whether the end of a sentence was left out.
    """

    sequences: tuple[TokenSequence, ...]
    rows: tuple[int, ...]
    is_cut: bool


def join_sentences(
    pieces: Sequence[list[int]], max_length: int, tokenizer: Tokenizer
) -> SentenceWindows:
    """Encode as `[CLS] sentence [SEP] [CLS] sentence [SEP] …`, as many per sequence as fit.

    Source: Liu 2019, section 3.1.

    Args:
        pieces: token ids of each sentence; one that is too long for a sequence is cut.
        max_length: maximum number of tokens of a sequence.
        tokenizer: provides the special tokens.
    """
    room = max_length - NUM_SPECIAL
    windows: list[list[int]] = [[]]
    rows, num_tokens = [], 0
    for own in pieces:
        ids = [tokenizer.cls_id, *own[:room], tokenizer.sep_id]
        if len(windows[-1]) + len(ids) > max_length:
            windows.append([])
        windows[-1] += ids
        rows.append(num_tokens)
        num_tokens += len(ids)
    if not pieces:
        windows = [[tokenizer.cls_id, tokenizer.sep_id]]
    sequences = tuple(TokenSequence(ids, [0] * len(ids)) for ids in windows)
    return SentenceWindows(sequences, tuple(rows), any(len(own) > room for own in pieces))
