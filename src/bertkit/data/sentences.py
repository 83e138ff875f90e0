"""Sentence splitting with Wikimedia's sentencex, and detection of sentence ends."""

import re
from collections.abc import Iterator
from itertools import pairwise
from unicodedata import category

# The splitter's time is quadratic for texts of brackets and quotes, so longer paragraphs are cut:
# after a full stop if possible, else at a space if there is one.
PIECE_LIMIT_CHARACTERS = 8_000
OTHER_ENDS = frozenset("…།༎")  # an ellipsis, and Tibetan marks, which also end clauses
CLOSING_CATEGORIES = frozenset({"Pe", "Pf", "Pi", "Zs"})  # "Pi" closes in »so«
THAI_AND_LAO = ("\u0e00", "\u0eff")  # scripts in which a space ends a sentence
SPACE_IN_THAI = re.compile("(?<=[\u0e00-\u0eff]) +(?=[\u0e00-\u0eff])")


def _expand(ranges: str) -> Iterator[str]:
    """Yield the characters in hexadecimal ranges."""
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


# Source: Unicode 18.0, PropList.txt, "Sentence_Terminal".
SENTENCE_TERMINALS = frozenset(
    _expand(
        """
    21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E
    1735-1736 17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F
    1C3B-1C3C 1C7E-1C7F 2024 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF
    A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16
    FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1
    11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 113D4-113D5
    1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43
    11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44
    16D6E-16D6F 16E98 1BC9F 1DA88
        """
    )
)


def ends_like_a_sentence(text: str) -> bool:
    """Whether a line ends with a sentence-ending mark, or is in a script that has none.

    Closing quotes and brackets may follow the mark.
    """
    for character in reversed(text):
        if character in SENTENCE_TERMINALS or character in OTHER_ENDS:
            return True
        if category(character) not in CLOSING_CATEGORIES and character not in "\"'":
            break
    return _is_thai_or_lao(text)


def _is_thai_or_lao(text: str) -> bool:
    """Whether most letters of a text are of the scripts in which a space ends a sentence."""
    first, last = THAI_AND_LAO
    return 2 * sum(first <= character <= last for character in text) > len(text)


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a paragraph into sentences, stripped, none of them empty.

    For a language (ISO 639-1) without rules of its own the splitter uses a related or general one.
    """
    return [part.strip() for part in segment_sentences(text, language) if part.strip()]


def segment_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text into sentences, with the blanks behind them, so that they join to the text."""
    import sentencex

    pieces = [text] if len(text) <= PIECE_LIMIT_CHARACTERS else _cut(text)
    parts = [part for piece in pieces for part in sentencex.segment(language, piece)]
    if text.isascii():
        return parts
    return [sentence for part in parts for sentence in _cut_at_spaces(part)]


def _cut_at_spaces(text: str) -> list[str]:
    """Cut Thai and Lao text at spaces, which stand between sentences and clauses; no other text."""
    ends = [blank.end() for blank in SPACE_IN_THAI.finditer(text)]
    if not ends or not _is_thai_or_lao(text):
        return [text]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


def _cut(text: str) -> list[str]:
    """Cut a text into pieces of bounded size."""
    pieces, start = [], 0
    while len(text) - start > PIECE_LIMIT_CHARACTERS:
        stop = start + PIECE_LIMIT_CHARACTERS
        middle = start + PIECE_LIMIT_CHARACTERS // 2
        after_stop, space = text.rfind(". ", middle, stop) + 1, text.rfind(" ", middle, stop)
        stop = max(after_stop or space, 0) or stop
        pieces.append(text[start:stop])
        start = stop
    return [*pieces, text[start:]]
