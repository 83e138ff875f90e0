"""Cutting paragraphs into sentences, by Wikimedia's sentencex."""

import sentencex

# The splitter's time grows with the square of a text of brackets and quotes, so longer paragraphs
# are cut: after a full stop where there is one, else between words where there are some.
PIECE_LIMIT_CHARACTERS = 8_000


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a paragraph, stripped, none of them empty.

    Args:
        text: a paragraph.
        language: its ISO 639-1 code; the splitter falls back on a related or a general rule.
    """
    pieces = [text] if len(text) <= PIECE_LIMIT_CHARACTERS else _cut(text)
    sentences = [part.strip() for piece in pieces for part in sentencex.segment(language, piece)]
    return [sentence for sentence in sentences if sentence]


def _cut(text: str) -> list[str]:
    """Pieces of bounded size."""
    pieces, start = [], 0
    while len(text) - start > PIECE_LIMIT_CHARACTERS:
        stop = start + PIECE_LIMIT_CHARACTERS
        middle = start + PIECE_LIMIT_CHARACTERS // 2
        after_stop, space = text.rfind(". ", middle, stop) + 1, text.rfind(" ", middle, stop)
        stop = max(after_stop or space, 0) or stop
        pieces.append(text[start:stop])
        start = stop
    return [*pieces, text[start:]]
