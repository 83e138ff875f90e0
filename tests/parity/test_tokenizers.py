"""Ids, offsets and decoding against `tokenizers` itself, which reads the same `tokenizer.json`."""

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests import tokenizer_folders
from tests.tokenizer_folders import KINDS, TEXTS, make_tokenizer
from tokenizers import Encoding, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Engine
from transformers import AutoTokenizer

from bertkit.tokenization.tokenizer import Tokenizer

SHARED_CORPUS = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpus"
NUM_LINES = 8_000  # of the corpus
LARGE_TABLE = 8_000  # pieces

# What algorithms treat in ways of their own: blanks, marks that join, control characters.
ODD = [
    "",
    " ",
    " a  b ",
    "a\tb\r\nc\n\nd \n e",
    "a\u00a0b\u2003c\u200bd\u00ade\u2028f\x0bg\x1ch\x85i\ufeffj\u3000k",
    "cafe\u0301 e\u0323\u0301 ﬁ\u0302 \u0301x \u0600 1",
    "👩\u200d👧 is a family, 👍🏽 is fine, 🇫🇷 and ❤\ufe0f too",
    "▁a▁ b ▁▁ Ġc ##d",
    "|||IP_ADDRESS||| x|||EMAIL_ADDRESS|||  [unused0] [unused1]x",
    "supercalifragilistic" * 12,
    "don't we'll I'M 12.50$ a_b C++ e.g. …",
]
LETTERS = "abcdeéÉßİΣςжक्षिกา한中文ﬁ①ーカ\u0301\u0323\u200b\u200d\u0600▁Ġ.,—’[]_<>/|"
BLANKS = " \t\x0b\x85\xa0\u2028\u3000\n"
WORDS = ["hello", "Menschen", "<s>", "</s>", "[SEP]", "  ", "\n", "|||IP_ADDRESS|||", "中国", "é"]


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    return make_tokenizer(tmp_path_factory.mktemp("tokenizers") / request.param, request.param)


def load_reference(folder: Path, controls: Iterable[str] = ()) -> Engine:
    """The engine of the file; with `controls`, for which these are plain text.

    It neither pads nor truncates, as the file of a sentence encoder may ask for.
    """
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"] = [
        one for one in content["added_tokens"] if one["content"] not in controls
    ]
    content["truncation"] = content["padding"] = None
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):
        for pair in vocabulary:  # a piece of Unigram could be any text
            pair[0] = f"\ufffe{pair[0]}" if pair[0] in controls else pair[0]
    else:
        ids = {
            one["content"]: one["id"]
            for one in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
        }
        content["model"]["vocab"] = vocabulary | ids
    if controls:
        content["post_processor"] = None
    return Engine.from_str(json.dumps(content))


def list_offsets(encoding: Encoding, text: str) -> list[tuple[int, int]]:
    """Offsets without the blank before a word, which not every file leaves out."""
    found = []
    for token, (start, stop) in zip(encoding.tokens, encoding.offsets, strict=True):
        blanks = len(token) - len(token.lstrip("Ġ ")) if token[:1] != "▁" else stop - start
        while blanks and start < stop and text[start].isspace():
            start, blanks = start + 1, blanks - 1
        found.append((start, stop))
    return found


def make_texts(number: int, seed: int) -> Iterator[str]:
    """Random texts: of odd characters, of odd words, parts of real ones, of any characters."""
    draw = random.Random(seed)
    for index in range(number):
        kind = index % 4
        if kind == 0:
            yield "".join(draw.choices(LETTERS + BLANKS + "    abc", k=draw.randint(0, 30)))
        elif kind == 1:
            yield " ".join(draw.choices(WORDS, k=draw.randint(0, 8)))
        elif kind == 2:
            text = draw.choice([*TEXTS.values()])
            yield text[draw.randrange(len(text)) :] + draw.choice(WORDS)
        else:
            ranges = [range(32, 0x250), range(0x250, 0xD800), range(0xE000, 0x110000)]
            yield "".join(chr(draw.choice(draw.choice(ranges))) for _ in range(draw.randint(0, 9)))


def test_ids_offsets_and_decoding_are_theirs(folder):
    ours, theirs = Tokenizer.load(folder), load_reference(folder)
    for text in [*TEXTS.values(), *ODD]:
        found, expected = ours.encode(text), theirs.encode(text)
        assert found.ids == expected.ids
        assert found.token_type_ids == expected.type_ids
        assert found.offsets == list_offsets(expected, text)
        assert ours.decode(found.ids) == theirs.decode(expected.ids)
        pair, expected = ours.encode(text, "ein Text"), theirs.encode(text, "ein Text")
        assert (pair.ids, pair.token_type_ids) == (expected.ids, expected.type_ids)


def test_the_mask_is_found_where_theirs_is(folder):
    ours, theirs = Tokenizer.load(folder), load_reference(folder)
    for text in ("I saw {}.", "{} is", "a{}b {}  {}c"):
        masked = text.replace("{}", ours.mask)
        assert ours.encode(masked, read_mask=True).ids == theirs.encode(masked).ids
        inner = theirs.encode(masked, add_special_tokens=False).ids
        assert ours.piece_ids([masked], read_mask=True) == [inner]


@pytest.mark.parametrize("number", [2_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_random_texts_have_their_ids_in_every_way(folder, number):
    """Also those that look like special tokens, which the engine of reference doesn't know here."""
    ours = Tokenizer.load(folder)
    theirs = load_reference(folder, ours.definition.controls)
    texts = list(make_texts(number, seed=number))
    check_all_ways(ours, theirs, texts)


def check_all_ways(ours: Tokenizer, theirs: Engine, texts: list[str]) -> None:
    expected = theirs.encode_batch(texts, add_special_tokens=False)
    ids = [one.ids for one in expected]
    assert ours.piece_ids(texts) == ids
    assert ours.piece_arrays(texts).to_lists() == ids
    for text, one in zip(texts, expected, strict=True):
        found = ours.encode_pieces(text)
        assert found.ids == one.ids
        assert found.offsets == list_offsets(one, text)


@pytest.mark.exhaustive
@pytest.mark.shared_data
@pytest.mark.skipif(not SHARED_CORPUS.is_dir(), reason="../shared/data isn't here")
@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_the_corpus_have_their_ids(tmp_path, monkeypatch, kind):
    lines = list(read_lines())
    for function in (train_word_pieces, train_byte_pairs, train_unigram):
        monkeypatch.setattr(tokenizer_folders, function.__name__, partial(function, lines[::5]))
    folder = make_tokenizer(tmp_path / kind, kind)
    ours = Tokenizer.load(folder)
    assert ours.vocab_size > LARGE_TABLE // 2
    check_all_ways(ours, load_reference(folder, ours.definition.controls), lines)


def read_lines() -> Iterator[str]:
    """Lines of each file of the corpus in turn."""
    paths = sorted(SHARED_CORPUS.rglob("*.gz"))
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            yield from map(str.strip, islice(stream, NUM_LINES // len(paths)))


def train_word_pieces(lines: list[str], _: object) -> list[str]:
    engine = Engine(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return sort_pieces(train(engine, trainers.WordPieceTrainer, lines))


def train_byte_pairs(lines: list[str], _: object) -> tuple[list[str], list[tuple[str, str]]]:
    engine = Engine(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    model = train(engine, trainers.BpeTrainer, lines, initial_alphabet=alphabet)
    return sort_pieces(model), [tuple(pair) for pair in model["merges"]]


def train_unigram(lines: list[str], _: object) -> list[tuple[str, float]]:
    engine = Engine(models.Unigram())
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    special = {"unk_token": "<unk>", "special_tokens": ["<unk>"]}
    model = train(engine, trainers.UnigramTrainer, lines, **special)
    return [(piece, score) for piece, score in model["vocab"]]


def train(engine: Engine, trainer: Callable[..., Any], lines: list[str], **more: Any) -> Any:
    trained = trainer(vocab_size=LARGE_TABLE, show_progress=False, **more)
    engine.train_from_iterator(lines, trained)
    return json.loads(engine.to_str())["model"]


def sort_pieces(model: Any) -> list[str]:
    return sorted(model["vocab"], key=model["vocab"].__getitem__)


def test_transformers_reads_what_is_saved_and_bertkit_what_it_saves(folder, tmp_path):
    ours = Tokenizer.load(folder)
    ours.save(tmp_path / "ours")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    texts = [*TEXTS.values(), "a b  c."]
    for tokenizer in (ours, Tokenizer.load(tmp_path / "theirs")):
        ids, pairs = tokenizer.encode_batch(texts), tokenizer.encode_batch(texts, texts)
        expected = theirs(texts, texts, padding=True, return_token_type_ids=True)
        assert pairs.input_ids.tolist() == expected["input_ids"]
        assert pairs.token_type_ids.tolist() == expected["token_type_ids"]
        assert ids.input_ids.tolist() == theirs(texts, padding=True)["input_ids"]
        assert tokenizer.mask_id == theirs.mask_token_id
        assert tokenizer.special == ours.special
