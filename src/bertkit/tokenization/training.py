"""WordPiece vocabulary training; the same text and settings give the same entries everywhere.

Google never published the trainer of BERT's vocabularies. Like the `tokenizers` library, this one
repeatedly merges the most frequent pair of neighboring pieces (byte-pair encoding) and marks
continuations with `##`. Unlike that library, it breaks ties by the text of the pair, so nothing
depends on the process, the hash seed or the number of threads.

Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", §3.2.
"""

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from unicodedata import category, normalize

from tokenizers import pre_tokenizers

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.tokenization.engine import (
    CONTINUATION,
    PLAIN_CHUNK,
    PLAIN_WORD,
    SPECIAL_TOKENS,
    build_normalizer,
)
from bertkit.tokenization.settings import MAX_WORD_CHARS, TokenizerSettings, VocabularySettings
from bertkit.tokenization.words import SURROGATE

MAX_PENDING_CHUNKS = 1 << 18
MAX_PENDING_CHARS = 1 << 24
MAX_DISTINCT_WORDS = 1_000_000  # up to 1 kB each; beyond, the rarest are dropped


@dataclass
class WordCounts:
    """Word counts and totals of a corpus."""

    counts: Counter[str] = field(default_factory=Counter)  # normalized word → occurrences
    num_texts: int = 0
    num_characters: int = 0
    num_words: int = 0  # counting repeats
    num_forgotten: int = 0  # occurrences of rare words that were dropped to limit memory
    num_in_long: int = 0  # characters in words that are too long, which aren't counted
    num_accented: int = 0  # words with accents that are removed

    def forget_rarest(self, max_words: int) -> None:
        """Drop the rarest words until at most half of `max_words` are left.

        All words of one frequency are dropped together, so the result depends only on the text. A
        dropped word that recurs is counted from zero: counts are exact or too low, never too high.

        Source: Manku and Motwani 2002, "Approximate Frequency Counts over Data Streams".
        """
        num_left, limit = len(self.counts), 0
        for count, num_words in sorted(Counter(self.counts.values()).items()):
            if num_left <= max_words // 2:
                break
            num_left, limit = num_left - num_words, count
        kept = {word: count for word, count in self.counts.items() if count > limit}
        self.num_forgotten += self.counts.total() - sum(kept.values())
        self.counts = Counter(kept)


class WordSplitter:
    """Normalizes a chunk of text and splits it into words, exactly as the tokenizer does."""

    def __init__(self, settings: TokenizerSettings) -> None:
        self._lowercase = settings.lowercase
        self._strip_accents = settings.strip_accents
        self._normalizer = build_normalizer(settings)
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def split(self, chunk: str) -> list[str]:
        """Return the words of a chunk."""
        if PLAIN_CHUNK.fullmatch(chunk):
            words: list[str] = PLAIN_WORD.findall(chunk.lower() if self._lowercase else chunk)
            return words
        text = self._normalizer.normalize_str(SURROGATE.sub("\ufffd", chunk))
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(text)]

    def removes_accents(self, chunk: str) -> bool:
        """Whether a chunk has accents, and they are removed."""
        if not self._strip_accents or chunk.isascii():
            return False
        return any(category(letter) == "Mn" for letter in normalize("NFD", chunk))


def count_words(texts: Iterable[str], settings: VocabularySettings) -> WordCounts:
    """Count the words of all texts.

    Space-separated chunks are counted first, and each distinct one is normalized once; at most
    262,144 chunks and 16 Mi characters are held, besides the distinct words. Words of more than 100
    characters, which the tokenizer maps to [UNK], aren't counted.
    """
    result = WordCounts()
    splitter = WordSplitter(settings)
    pending: Counter[str] = Counter()
    pending_chars = 0
    for text in texts:
        pending.update(text.split(" "))
        pending_chars += len(text)
        result.num_texts += 1
        result.num_characters += len(text)
        if len(pending) > MAX_PENDING_CHUNKS or pending_chars > MAX_PENDING_CHARS:
            _add_chunks(pending, splitter, result)
            pending_chars = 0
    _add_chunks(pending, splitter, result)
    return result


def _add_chunks(pending: Counter[str], splitter: WordSplitter, result: WordCounts) -> None:
    """Move chunk counts into word counts; a chunk may contain any number of words."""
    for chunk, count in pending.items():
        result.num_accented += count * splitter.removes_accents(chunk)
        for word in splitter.split(chunk):
            if len(word) > MAX_WORD_CHARS:
                result.num_in_long += count * len(word)
            else:
                result.counts[word] += count
                result.num_words += count
                if len(result.counts) > MAX_DISTINCT_WORDS:
                    result.forget_rarest(MAX_DISTINCT_WORDS)
    pending.clear()


Pair = tuple[str, str]


def build_vocabulary(
    word_counts: WordCounts,
    settings: VocabularySettings,
    on_entries: Callable[[int], None] = lambda _: None,
) -> list[str]:
    """Build a vocabulary from word counts; `on_entries` receives each number of new entries.

    Returns:
        Special tokens ([PAD] first), characters, then merged pieces, the most frequent first: fewer
        than `vocab_size` if no more pairs reach `min_frequency`.
    """
    if not word_counts.counts:
        raise InputError("the input has no words to train a vocabulary on; name input with text")
    letters = most_frequent_characters(word_counts.counts, settings.alphabet_limit)
    initial, split = sorted(letters), WordSplitter(settings).split
    # Punctuation and Chinese characters are separate words, so they are never continuations.
    continuations = [CONTINUATION + x for x in initial if len(split(f"a{x}a")) == 1]
    vocabulary = [*SPECIAL_TOKENS, *initial, *continuations]
    if len(vocabulary) > settings.vocab_size:
        raise SettingsError(
            f"vocab_size ({settings.vocab_size}) can't hold {len(SPECIAL_TOKENS)} special tokens"
            f" and {pluralize(len(vocabulary) - len(SPECIAL_TOKENS), 'entry', 'entries')} for"
            f" {pluralize(len(letters), 'character')};"
            f" set it to at least {len(vocabulary)}, or keep fewer characters"
        )
    on_entries(len(vocabulary))
    merges = Merges(word_counts.counts, letters)
    while len(vocabulary) < settings.vocab_size:
        # No piece is produced twice: before it exists, no merge has crossed its borders, so the
        # same merges happened inside each occurrence, and its last pair is the same everywhere.
        piece = merges.merge_best(settings.min_frequency)
        if piece is None:
            break
        vocabulary.append(piece)
        on_entries(1)
    return vocabulary


def count_unknown(counts: Counter[str], vocabulary: Iterable[str]) -> int:
    """Count the words with a character that a trained vocabulary lacks, which are [UNK]."""
    letters = {entry for entry in vocabulary if len(entry) == 1}
    return sum(count for word, count in counts.items() if not letters.issuperset(word))


def most_frequent_characters(counts: Counter[str], limit: int) -> set[str]:
    """Return the most frequent characters; ties are broken by code point."""
    frequencies: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            frequencies[character] += count
    ranked = sorted(frequencies, key=lambda character: (-frequencies[character], character))
    return set(ranked[:limit])


class Merges:
    """The words of a corpus as pieces, with the counts of neighboring pairs.

    A merge updates only the words that contain its pair. The heap may hold outdated counts; they
    are always too high and are corrected when popped.

    Args:
        letters: characters to keep; words with any other character are [UNK] and left out.
    """

    def __init__(self, counts: Counter[str], letters: set[str]) -> None:
        self._words: list[list[str]] = []
        self._word_counts: list[int] = []
        self._pair_counts: defaultdict[Pair, int] = defaultdict(int)
        # A word may be listed twice or no longer contain the pair; arrays take far less than sets.
        self._words_of_pair: defaultdict[Pair, array[int]] = defaultdict(lambda: array("I"))
        for word, count in counts.items():
            if len(word) > 1 and letters.issuperset(word):
                pieces = [word[0], *(CONTINUATION + letter for letter in word[1:])]
                for pair in pairwise(pieces):
                    self._pair_counts[pair] += count
                    self._words_of_pair[pair].append(len(self._words))
                self._words.append(pieces)
                self._word_counts.append(count)
        self._heap = [(-count, *pair) for pair, count in self._pair_counts.items()]
        heapq.heapify(self._heap)

    def merge_best(self, min_frequency: int) -> str | None:
        """Merge the most frequent pair; return the new piece, None if below `min_frequency`."""
        while self._heap:
            negative_count, left, right = heapq.heappop(self._heap)
            count = self._pair_counts[left, right]
            if count < min_frequency:
                continue
            if count == -negative_count:
                return self._merge((left, right))
            heapq.heappush(self._heap, (-count, left, right))
        return None

    def _merge(self, pair: Pair) -> str:
        piece = pair[0] + pair[1].removeprefix(CONTINUATION)
        changes: defaultdict[Pair, int] = defaultdict(int)
        for index in dict.fromkeys(self._words_of_pair.pop(pair)):
            before, count = self._words[index], self._word_counts[index]
            after = merge_pieces(before, pair, piece)
            self._words[index] = after
            for old in pairwise(before):
                changes[old] -= count
            for new in pairwise(after):
                changes[new] += count
                if piece in new:
                    self._words_of_pair[new].append(index)
        for changed, change in changes.items():
            self._pair_counts[changed] += change
            if change > 0:
                heapq.heappush(self._heap, (-self._pair_counts[changed], *changed))
        del self._pair_counts[pair]
        return piece


def merge_pieces(pieces: list[str], pair: Pair, piece: str) -> list[str]:
    """Replace each occurrence of a pair with the merged piece, from left to right."""
    left, right = pair
    merged: list[str] = []
    position, last = 0, len(pieces) - 1
    while position <= last:
        if position < last and pieces[position] == left and pieces[position + 1] == right:
            merged.append(piece)
            position += 2
        else:
            merged.append(pieces[position])
            position += 1
    return merged
