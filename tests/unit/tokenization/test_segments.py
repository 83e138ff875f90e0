import tracemalloc

import pytest
from tests.vocabularies import train_vocabulary

from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer

TEXTS = [
    "The cat, the “dog”.",
    "",
    "  a\nb  ",
    "\n",
    "end",
    "naïve—cafe\u0301 中文",
    "a\ud800b the",
]
HOSTILE = [
    "a",
    "\u0301",
    ".",
    "中",
    " ",
    "a ",
    "\0",
    "\x0b",
    "\n",
    "\ud800",
    "[SEP]",
    "\ufdfa",
    "“",
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(train_vocabulary([*TEXTS, "[SEP]"], VocabularySettings(min_frequency=1)))


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_hostile_text_is_cut_as_any_other(tokenizer, unit):
    text = unit * (100_000 // len(unit))
    assert tokenizer.piece_arrays([text, "the", text]).to_lists() == tokenizer.piece_ids(
        [text, "the", text]
    )


def test_memory_is_a_small_multiple_of_the_text(tokenizer):
    text = "word, and another " * 100_000
    tracemalloc.start()
    try:
        tokenizer.piece_arrays([text])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 32 * len(text)
