"""What the entries of a vocabulary spell: their text, and whether they continue a word.

WordPiece marks pieces that continue a word with `##`; Unigram marks those that begin one with `▁`,
and BPE has the space before a word as the first byte of its first piece. In scripts without blanks
between words there are no such marks: each piece is a word of its own. So is a piece that begins
with a punctuation mark.
"""

import re
from collections.abc import Callable
from functools import cached_property
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from bertkit.tokenization.definition import Definition
from bertkit.tokenization.engine import CONTINUATION
from bertkit.tokenization.layout import BLANK
from bertkit.tokenization.names import Kind
from bertkit.tokenization.piece_tables import SIGNS
from bertkit.tokenization.words import UNSPACED

UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
BYTE_OF_SIGN = {sign: byte for byte, sign in enumerate(SIGNS)}
SHOWN_SPACE = "␣"
ESCAPED = 0xDC00  # Python's marks of bytes that aren't UTF-8, as in half a character, begin here
FIRST_OF_UNSPACED = 0xE3  # from this first byte on, characters are kana, ideographs and hangul


def spell_word_piece(token: str) -> str:
    """Return the text of a piece of WordPiece; a space in front of what begins a word."""
    is_marked = token.startswith(CONTINUATION) and len(token) > len(CONTINUATION)
    return token.removeprefix(CONTINUATION) if is_marked else f" {token}"


def spell_unigram_piece(token: str) -> str:
    """Return the text of a piece of Unigram."""
    return token.replace(BLANK, " ")


def spell_bytes(token: str) -> str:
    """Return the text of a piece of byte-level BPE; bytes of half characters are surrogates."""
    return bytes(map(BYTE_OF_SIGN.__getitem__, token)).decode("utf-8", "surrogateescape")


SPELLERS: dict[Kind, Callable[[str], str]] = {
    "WordPiece": spell_word_piece,
    "Unigram": spell_unigram_piece,
    "BPE": spell_bytes,
}


class Spelling:
    """What each entry of a vocabulary spells."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        spell, added = SPELLERS[definition.kind], definition.controls | definition.added
        # Special tokens, and others that are found in texts before words are, are no pieces.
        self._texts = [None if one in added else spell(one) for one in definition.vocabulary]

    @cached_property
    def is_continuation(self) -> NDArray[np.bool_]:
        """For each entry, whether it continues a word; shape [vocab_size]."""
        is_marked = self._definition.kind == "WordPiece"
        marks = (
            text is not None and continues_word(text, is_marked=is_marked) for text in self._texts
        )
        return np.fromiter(marks, dtype=np.bool_, count=len(self._texts))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """For each entry, its characters without blanks; special tokens have none; [vocab_size]."""
        lengths = (
            count_characters(token if text is None else text)
            * (token not in self._definition.controls)
            for token, text in zip(self._definition.vocabulary, self._texts, strict=True)
        )
        return np.fromiter(lengths, dtype=np.int64, count=len(self._texts))

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """The entries as people read them: `##` marks a piece that continues a word."""
        if self._definition.kind == "WordPiece":
            return self._definition.vocabulary
        entries = zip(
            self._definition.vocabulary, self._texts, self.is_continuation.tolist(), strict=True
        )
        return tuple(
            describe(
                token if text is None else text.removeprefix(" ") or text,
                # BPE spells words at the beginning of a text like pieces that continue one.
                mark=CONTINUATION * (continues and not (text or "")[:1].isupper()),
            )
            for token, text, continues in entries
        )


def continues_word(text: str, *, is_marked: bool) -> bool:
    """Whether a piece continues a word; where that `is_marked`, marks of punctuation may, too."""
    first = text[:1]
    if first == " " or UNSPACED_LETTER.match(first):
        return False
    if "\udc80" <= first <= "\udcff":
        return ord(first) - ESCAPED < FIRST_OF_UNSPACED
    return is_marked or first.isalnum() or category(first or " ").startswith("M")


def count_characters(text: str) -> int:
    """Count the characters that begin in a text, without blanks."""
    return sum(not (one.isspace() or "\udc80" <= one <= "\udcbf") for one in text)


def describe(text: str, *, mark: str) -> str:
    """Return a text in which each character can be seen."""
    if text.isspace():
        text = text.replace(" ", SHOWN_SPACE)
    if not text.isprintable():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return mark + text
