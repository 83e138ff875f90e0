"""The corpus of a run in numbers, and masked sentences of its held-out part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.data.shards import Shard, ShardSet
from bertkit.tokenization.tokenizer import Tokenizer

FEWEST_TOKENS, MOST_TOKENS = 6, 24  # per sentence: enough context, and fits every model
FEWEST_LETTERS = 3
TRIES_PER_BLANK = 20


@dataclass(frozen=True)
class Blank:
    """A sentence with a masked word."""

    text: str  # with one [MASK]
    word: str  # that [MASK] replaces


def describe_corpus(shards: ShardSet) -> dict[str, str | int]:
    """Return the counts of the corpus, by name."""
    manifest = shards.manifest
    return {
        "entries of the vocabulary": manifest.vocab_size,
        "documents to learn from": manifest.train.documents,
        "sentences to learn from": manifest.train.sentences,
        "tokens to learn from": manifest.train.tokens,
        "documents held out": manifest.held_out.documents,
        "sentences held out": manifest.held_out.sentences,
        "tokens held out": manifest.held_out.tokens,
    }


def choose_blanks(shards: ShardSet, tokenizer: Tokenizer, num_blanks: int) -> list[Blank]:
    """Mask a word in each of some sentences spread over the largest held-out shard."""
    if not shards.held_out:
        return []
    shard = max(shards.held_out, key=lambda shard: shard.num_sentences)
    blanks: list[Blank] = []
    for part in np.array_split(list_usable(shard), num_blanks):
        found = (hide_word(shard, int(index), tokenizer) for index in part[:TRIES_PER_BLANK])
        blanks += [blank for blank in found if blank is not None and blank not in blanks][:1]
    return blanks


def list_usable(shard: Shard) -> NDArray[np.int64]:
    """Return the indices of the sentences of medium length."""
    lengths = np.diff(shard.sentence_offsets.astype(np.int64))
    return np.flatnonzero((lengths >= FEWEST_TOKENS) & (lengths <= MOST_TOKENS))


def hide_word(shard: Shard, index: int, tokenizer: Tokenizer) -> Blank | None:
    """Mask the word nearest to the middle of a sentence; None if none is a single token."""
    start, stop = (int(place) for place in shard.sentence_offsets[index : index + 2])
    ids = shard.tokens(start, stop).tolist()
    words = [tokenizer.describe_piece(id_) for id_ in ids]
    whole = [
        place
        for place in range(1, len(ids) - 1)
        if words[place].isalpha()
        and len(words[place]) >= FEWEST_LETTERS
        and not tokenizer.is_continuation[ids[place : place + 2]].any()
    ]
    if not whole:
        return None
    place = min(whole, key=lambda place: abs(2 * place - len(ids)))
    mask = tokenizer.mask
    text = " ".join((tokenizer.decode(ids[:place]), mask, tokenizer.decode(ids[place + 1 :])))
    return Blank(text, words[place]) if text.count(mask) == 1 else None
