"""Encoding of texts and pairs for feature extraction, with character offsets of tokens."""

from dataclasses import dataclass
from typing import TypeAlias

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.inference.text_encoder import NUL, TextCounts
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import Tokenizer, check_texts

TextOrPair: TypeAlias = str | tuple[str, str]

CHARS_PER_TOKEN = 64  # far more than any token has, apart from white space


@dataclass(frozen=True)
class PairEncoder:
    """Encodes and truncates texts and pairs, and counts problems found in them.

    Attributes:
        tokenizer: the model's tokenizer.
        max_length: maximum number of tokens, including special tokens; the longer text of a pair is
            cut first.
        has_pairs: whether the model has a second segment.
    """

    tokenizer: Tokenizer
    max_length: int
    has_pairs: bool

    def __call__(self, text: TextOrPair, counts: TextCounts) -> tuple[Encoding, bool]:
        """Encode one text or pair, and return whether it was truncated; any content is accepted."""
        parts = text if isinstance(text, tuple) else (text,)
        check_texts(parts)
        if len(parts) not in {1, 2}:
            raise InputError(
                f"expected a text or a pair of texts, got {pluralize(len(parts), 'text')}"
            )
        if len(parts) == 2 and not self.has_pairs:
            raise InputError("this model takes single texts only: its type_vocab_size is 1")
        encoding = self.tokenizer.encode(*map(self._head, parts))
        is_truncated = len(encoding) > self.max_length
        if is_truncated:
            encoding = self.tokenizer.encode(*map(self._head, parts), max_length=self.max_length)
        self._count(parts, encoding, counts)
        counts.truncated += is_truncated
        return encoding, is_truncated

    def _head(self, text: str) -> str:
        """Shorten a far too long text at white space, to one that still exceeds max_length."""
        end = text.find(" ", self.max_length * CHARS_PER_TOKEN)
        if end < 0 or len(self.tokenizer.piece_ids([text[:end]])[0]) <= self.max_length:
            return text
        return text[:end]

    def _count(self, parts: tuple[str, ...], encoding: Encoding, counts: TextCounts) -> None:
        """Update the counts for a text."""
        counts.texts += 1
        counts.tokens += len(encoding)
        counts.with_nul += any(NUL in part for part in parts)
        num_special = 1 + len(parts)
        num_unknown = encoding.ids.count(self.tokenizer.unk_id)
        counts.empty += len(encoding) == num_special
        counts.unknown_only += 0 < num_unknown == len(encoding) - num_special
