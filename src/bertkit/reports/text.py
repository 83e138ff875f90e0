"""Foreign text made fit to be shown: legible characters, and names that fit their place."""

import re
import unicodedata

NAME_COLUMNS = 80
_ILLEGIBLE = re.compile("[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def make_legible(text: str) -> str:
    """Control characters as their pictures (␀), and what is no character as �; lengths stay.

    XML knows none of these, not even escaped, and an SVG file with one isn't shown at all.
    """
    return _ILLEGIBLE.sub(lambda found: _picture(found[0]), text)


def shorten(text: str, limit: int = NAME_COLUMNS) -> str:
    """The beginning of a text, ending in … where it takes more than `limit` ≥ 2 columns."""
    num_columns = 0
    for index, character in enumerate(text):
        num_columns += count_columns(character)
        if num_columns > limit:
            return text[: index - 1] + "…"
    return text


def count_columns(text: str) -> int:
    """How many columns of a monospaced font a text takes, about: those of East Asia are wide."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"
