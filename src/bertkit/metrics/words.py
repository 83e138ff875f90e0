"""Words of texts in any script, also of those that put no blanks between them."""

import re
import unicodedata
from itertools import islice

# Characters of scripts that put no blanks between words.
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # what stands for ideographs, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
)
UNSPACED_WORD = re.compile(rf"[{UNSPACED}][^\w\s]*")  # where signs are gone, marks are what is left
WRITTEN_WORD = re.compile(rf"{UNSPACED_WORD.pattern}|[^\s{UNSPACED}]+")


def split_words(text: str) -> list[str]:
    """The words of a text, in small letters and without signs.

    In Chinese, Japanese, Thai, Lao, Khmer and Burmese each character is one, with the marks on it.
    """
    unsigned = "".join(char if _is_of_word(char) else " " for char in text.lower())
    return UNSPACED_WORD.sub(r" \g<0> ", unsigned).split()


def is_character(word: str) -> bool:
    """Whether a word is a character of a script that puts no blanks between words."""
    return UNSPACED_WORD.match(word) is not None


def count_words(text: str) -> int:
    """How many words a text has as it is written: what stands between blanks, or characters."""
    return len(WRITTEN_WORD.findall(text))


def cut_words(text: str, number: int) -> str:
    """The first words of a text as they are written, in one line; counted as `count_words` does."""
    stop = max((word.end() for word in islice(WRITTEN_WORD.finditer(text), number)), default=0)
    return " ".join(text[:stop].split())


def _is_of_word(char: str) -> bool:
    """Whether it is a letter, a digit or a mark on one, as vowels of Devanagari and Tamil are."""
    return char.isalnum() or unicodedata.category(char).startswith("M")
