"""Where the words of a text are, in any script.

A tokenizer of WordPiece has words, which its pre-tokenizer finds. For other algorithms a word is
what stands between blanks and punctuation marks. Where scripts have no blanks, ideographs and
hiragana are words by themselves and katakana in a row are one, as Unicode's rules have it; of Thai,
Lao, Khmer and Burmese, which need a dictionary, the pieces of the tokenizer are the words.

Source: Unicode Standard Annex 29, "Unicode Text Segmentation", section 4.1.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from unicodedata import category

from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers

from bertkit.tokenization.engine import run_engine
from bertkit.tokenization.words import UNSPACED

Span = tuple[int, int]  # `text[start:stop]`

KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
BY_DICTIONARY = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
PARTS = re.compile(
    rf"(?P<run>[{BY_DICTIONARY}]+)|[{KATAKANA}]+|[{UNSPACED}]ー*[^\w\s]*|[^{UNSPACED}]+"
)


def find_pre_tokens(engine: Engine, text: str) -> list[Span]:
    """Return the words that an engine cuts into pieces, without what normalization drops."""
    encoding = run_engine(engine, text)
    spans: dict[int | None, Span] = {}
    for word, (start, stop) in zip(encoding.word_ids, encoding.offsets, strict=True):
        spans[word] = (spans[word][0] if word in spans else start, stop)
    return list(spans.values())


def add_marks(text: str, spans: list[Span]) -> list[Span]:
    """Extend words by the marks behind them that normalization has stripped."""
    words = list[Span]()
    limits = [start for start, _ in spans[1:]] + [len(text)]
    for (start, stop), limit in zip(spans, limits, strict=False):
        while stop < limit and category(text[stop]) == "Mn":
            stop += 1
        words.append((start, stop))
    return words


def find_written_words(text: str, find_pieces: Callable[[str], list[Span]]) -> list[Span]:
    """Return the words between blanks and punctuation marks; pieces are those of a text alone."""
    words = []
    for start, stop in find_pre_tokens(_build_word_engine(), text):
        for part in PARTS.finditer(text, start, stop):
            if part["run"]:
                words += _find_in_run(*part.span(), text, find_pieces)
            else:
                words.append(part.span())
    return words


def _find_in_run(
    start: int, stop: int, text: str, find_pieces: Callable[[str], list[Span]]
) -> list[Span]:
    """Return the pieces of a run of letters, each with the marks behind it."""
    begins = {start + begin for begin, end in find_pieces(text[start:stop]) if begin < end}
    inner = sorted(place for place in begins if not category(text[place]).startswith("M"))
    return list(pairwise([start, *(place for place in inner if place > start), stop]))


@cache
def _build_word_engine() -> Engine:
    """Build an engine whose pieces are the words of BERT, with case and accents."""
    engine = Engine(models.WordLevel({"": 0}, unk_token=""))
    engine.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return engine
