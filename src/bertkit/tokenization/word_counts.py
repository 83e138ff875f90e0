"""Word counting for a corpus of any size in bounded memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tokenizers import pre_tokenizers

from bertkit.tokenization.engine import (
    MAX_WORD_CHARS,
    PLAIN_CHUNK,
    PLAIN_WORD,
    SURROGATE,
    build_normalizer,
)
from bertkit.tokenization.settings import TokenizerSettings, VocabularySettings

MAX_PENDING_CHUNKS = 1 << 18
MAX_PENDING_CHARS = 1 << 24


@dataclass
class WordCounts:
    """Word counts and totals of a corpus.

    Attributes:
        counts: normalized word → occurrences.
        num_texts: texts read.
        num_characters: characters in them.
        num_words: words in them, counting repeats.
        num_forgotten: occurrences of rare words that were dropped to limit memory.
    """

    counts: Counter[str] = field(default_factory=Counter)
    num_texts: int = 0
    num_characters: int = 0
    num_words: int = 0
    num_forgotten: int = 0

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
        self._normalizer = build_normalizer(settings)
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def split(self, chunk: str) -> list[str]:
        """Return the words of a chunk."""
        if PLAIN_CHUNK.fullmatch(chunk):
            words: list[str] = PLAIN_WORD.findall(chunk.lower() if self._lowercase else chunk)
            return words
        text = self._normalizer.normalize_str(SURROGATE.sub("\ufffd", chunk))
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(text)]


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
            _add_chunks(pending, splitter, result, settings.max_distinct_words)
            pending_chars = 0
    _add_chunks(pending, splitter, result, settings.max_distinct_words)
    return result


def _add_chunks(
    pending: Counter[str], splitter: WordSplitter, result: WordCounts, max_words: int
) -> None:
    """Move chunk counts into word counts; a chunk may contain any number of words."""
    for chunk, count in pending.items():
        for word in splitter.split(chunk):
            if len(word) <= MAX_WORD_CHARS:
                result.counts[word] += count
                result.num_words += count
                if len(result.counts) > max_words:
                    result.forget_rarest(max_words)
    pending.clear()
