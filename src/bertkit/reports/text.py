"""Foreign text made fit to be shown: legible characters, and names that fit their place."""

import re
import unicodedata

NAME_COLUMNS = 80
# Controls, halves of surrogate pairs and what is no character; then what can't be seen but turns,
# breaks or splits what can: zero-width blanks, ends of lines, bidirectional overrides and isolates.
_ILLEGIBLE = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def show(text: str, limit: int = NAME_COLUMNS) -> str:
    """A foreign word or text in a line: a label, a name of a column, a text among mistakes.

    Whatever is shown of foreign data passes through here: one line, nothing that steers a terminal
    or reorders a page, and … where it takes more than `limit` columns. Programs get it as it is.
    """
    start = text[: 8 * limit]  # a cell of megabytes isn't searched for blanks
    shown = " ".join(make_legible(start).split())
    return shorten(shown if len(start) == len(text) else shown + "…", limit)


def make_legible(text: str) -> str:
    """Control characters as their pictures (␀), and what can't be shown as �; lengths stay.

    XML knows no control characters, not even escaped, and an SVG file with one isn't shown at all.
    A right-to-left override would turn around all that stands behind it.
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
