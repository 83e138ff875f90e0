"""Pieces of words, trained on a few texts: the same in every run."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tokenizers import normalizers, pre_tokenizers

Pair = tuple[str, str]


def train_word_pieces(texts: Iterable[str]) -> list[str]:
    normalizer = normalizers.BertNormalizer(lowercase=True)
    words = split_words(pre_tokenizers.BertPreTokenizer(), map(normalizer.normalize_str, texts))
    symbols = [[word[0], *(f"##{letter}" for letter in word[1:])] for word in words]
    merges = merge_pairs(symbols)
    alphabet = {symbol for word in words for letter in word for symbol in (letter, f"##{letter}")}
    return [*sorted(alphabet), *dict.fromkeys(map(join_pieces, merges))]


def train_byte_pairs(texts: Iterable[str]) -> tuple[list[str], list[Pair]]:
    """Pieces, all bytes among them, and merges."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    merges = merge_pairs([[*word] for word in split_words(byte_level, texts)])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*alphabet, *dict.fromkeys(map(join_pieces, merges))], merges


def train_unigram(texts: Iterable[str]) -> list[tuple[str, float]]:
    """Pieces with the logarithm of their share among all pieces that any merge made."""
    normalized = (unicodedata.normalize("NFKC", text) for text in texts)
    words = split_words(pre_tokenizers.Metaspace(), normalized)
    pieces = [*map(join_pieces, merge_pairs([[*word] for word in words]))]
    counts = Counter(letter for word in words for letter in word)
    counts.update({piece: sum(word.count(piece) for word in words) for piece in pieces})
    total = sum(counts.values())
    return [(piece, math.log(count / total)) for piece, count in counts.items()]


def split_words(pre_tokenizer: Any, texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word, _ in pre_tokenizer.pre_tokenize_str(text)]


def merge_pairs(words: list[list[str]]) -> list[Pair]:
    """Merge the most frequent pair of pieces, while one occurs twice, as BPE is trained.

    The trainers of `tokenizers` break ties differently in each run.
    """
    merges: list[Pair] = []
    while True:
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = max(counts, key=lambda pair: (counts[pair], pair))
        if counts[best] == 1:
            return merges
        merges.append(best)
        for word in words:
            place = 0
            while place < len(word) - 1:
                if (word[place], word[place + 1]) == best:
                    word[place : place + 2] = [join_pieces(best)]
                place += 1


def join_pieces(pair: Pair) -> str:
    return pair[0] + pair[1].removeprefix("##")
