import random
import sys
import tracemalloc
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
from tests.vocabularies import train_vocabulary

from bertkit.tokenization import engine
from bertkit.tokenization.engine import (
    MAX_KNOWN_CHUNKS,
    SPECIAL_TOKENS,
    cut_segments,
    find_segments,
)
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


@pytest.fixture(params=["table", "nanotoken"])
def cut(request, tokenizer):
    if request.param == "table":
        return lambda texts: cut_segments(find_segments(texts), tokenizer._known_chunks)
    encoder = engine.find_fast_encoder(tokenizer._engine)
    if encoder is None:
        pytest.skip("nanotoken isn't installed")
    return encoder


def test_each_distinct_stretch_is_found_with_its_place():
    found = find_segments(["the cat, the", "", "dog "])
    assert [found.distinct[number] for number in found.numbers] == [
        *("the", "cat", ",", "the", "\n", "\n", "dog"),
    ]
    assert found.ends.tolist() == [4, 5, 7]


@pytest.mark.parametrize("texts", [[], [""], ["", ""], TEXTS, TEXTS[::-1], [" ".join(TEXTS)]])
def test_arrays_are_what_the_engine_gives(tokenizer, cut, texts):
    pieces = cut(texts)
    assert pieces.to_lists() == [tokenizer.encode(text).ids[1:-1] for text in texts]
    assert pieces.ids.dtype == "uint32"
    assert len(pieces.ends) == len(texts)


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_hostile_text_is_cut_as_any_other(tokenizer, cut, unit):
    text = unit * (100_000 // len(unit))
    assert cut([text, "the", text]).to_lists() == tokenizer.piece_ids([text, "the", text])


def test_random_bytes_are_cut_as_any_other(tokenizer, cut):
    content = random.Random(0).randbytes(50_000)
    texts = [content.decode(code, "replace") for code in ("utf-8", "latin-1", "utf-16")]
    assert cut(texts).to_lists() == [tokenizer.encode(text).ids[1:-1] for text in texts]


def test_another_version_of_the_fast_encoder_isnt_used(tokenizer, monkeypatch):
    monkeypatch.setattr(engine, "version", lambda _: "0.1.1")
    assert engine.find_fast_encoder(tokenizer._engine) is None
    monkeypatch.undo()
    monkeypatch.setattr(engine, "version", missing)
    assert engine.find_fast_encoder(tokenizer._engine) is None
    assert Tokenizer(SPECIAL_TOKENS).piece_arrays(["a"]).to_lists() == [[1]]


def missing(name: str) -> str:
    raise PackageNotFoundError(name)


def stub(refusal: Exception | None = None, cache_entries: int = 0) -> SimpleNamespace:
    """A module in nanotoken's place."""

    def from_json(content: str) -> None:
        if refusal is not None:
            raise refusal

    module = SimpleNamespace(
        UnsupportedTokenizerError=UnicodeError,
        Tokenizer=SimpleNamespace(from_json=from_json),
        cache_entries=cache_entries,
        get_cache_entries=lambda: module.cache_entries,
        set_cache_entries=lambda entries: setattr(module, "cache_entries", entries),
    )
    return module


@pytest.mark.parametrize("module", [None, stub(UnicodeError("unsupported"))])
def test_a_fast_encoder_that_cant_be_used_is_left_aside(monkeypatch, module):
    monkeypatch.setattr(engine, "version", lambda _: engine.TESTED_VERSION)
    monkeypatch.setitem(sys.modules, "nanotoken", module)  # None: importing it fails
    assert Tokenizer(SPECIAL_TOKENS).piece_arrays(["a"]).to_lists() == [[1]]


@pytest.mark.parametrize(("before", "after"), [(1 << 20, MAX_KNOWN_CHUNKS), (1000, 1000)])
def test_the_fast_encoders_table_is_made_no_larger(monkeypatch, tokenizer, before, after):
    module = stub(cache_entries=before)
    monkeypatch.setattr(engine, "version", lambda _: engine.TESTED_VERSION)
    monkeypatch.setitem(sys.modules, "nanotoken", module)
    assert engine.find_fast_encoder(tokenizer._engine) is not None
    assert module.cache_entries == after


def test_memory_is_a_small_multiple_of_the_text():
    text = "word, and another " * 100_000
    tracemalloc.start()
    try:
        find_segments([text])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 12 * len(text)
