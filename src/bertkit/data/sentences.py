"""Cutting paragraphs into sentences, by Wikimedia's sentencex."""

import sentencex

# Above this, what the splitter is given is cut, so that its time stays proportional to the text.
PIECE_LIMIT_CHARACTERS = 20_000


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
    """Pieces of bounded size, cut at white space where there is some."""
    pieces, start = [], 0
    while start < len(text):
        stop = min(start + PIECE_LIMIT_CHARACTERS, len(text))
        if stop < len(text):
            space = text.rfind(" ", start + PIECE_LIMIT_CHARACTERS // 2, stop)
            stop = space if space > 0 else stop
        pieces.append(text[start:stop])
        start = stop
    return pieces
