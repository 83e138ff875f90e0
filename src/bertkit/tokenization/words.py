"""Word splitting for any script, including those without spaces between words."""

import re
import unicodedata
from itertools import islice

SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: Python's mark of what isn't text
# Characters of scripts without spaces between words.
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # iteration marks and the like, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
)
UNSPACED_WORD = re.compile(rf"[{UNSPACED}][^\w\s]*")  # in `split_words`, `[^\w\s]` is only marks
WRITTEN_WORD = re.compile(rf"{UNSPACED_WORD.pattern}|[^\s{UNSPACED}]+")


def split_words(text: str) -> list[str]:
    """Split a text into lowercase words, without punctuation and symbols.

    In Chinese, Japanese, Thai, Lao, Khmer and Burmese, each character with its marks is a word.
    Combining marks, such as the vowel signs of Devanagari, belong to words.
    """
    unsigned = "".join(
        char if char.isalnum() or unicodedata.category(char).startswith("M") else " "
        for char in text.lower()
    )
    return UNSPACED_WORD.sub(r" \g<0> ", unsigned).split()


def count_words(text: str) -> int:
    """Count space-separated words; in scripts without spaces, each character is a word."""
    return len(WRITTEN_WORD.findall(text))


def cut_words(text: str, number: int) -> str:
    """Return the first words of a text, unchanged but in one line, counted as in `count_words`."""
    stop = max((word.end() for word in islice(WRITTEN_WORD.finditer(text), number)), default=0)
    return " ".join(text[:stop].split())
