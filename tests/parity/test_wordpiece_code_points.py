"""Every Unicode code point against google's algorithm, as transformers keeps it in Python.

Of planes that are for private use, or without any assigned character, the ends stand for all.
The differences are those that docs/guide/tokenizer.md lists, and this test reads them from there.
"""

import re
import sys
import unicodedata
from itertools import product
from pathlib import Path

import pytest
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer

from bertkit.tokenization.engine import SPECIAL_TOKENS, build_engine
from bertkit.tokenization.settings import TokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.training import WordSplitter

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "tokenizer.md"
UNICODE_VERSION = "14.0.0"
BLOCK_SIZE = 256
SURROGATES = range(0xD800, 0xE000)
UNIFORM_PLANES = (*range(4, 14), 15, 16)  # without any assigned character, or for private use


def is_within_uniform_plane(code: int) -> bool:
    return code >> 16 in UNIFORM_PLANES and BLOCK_SIZE <= code & 0xFFFF < 0x10000 - BLOCK_SIZE


CODES = [code for code in range(sys.maxunicode + 1) if code not in SURROGATES]
CHARACTERS = [chr(code) for code in CODES if not is_within_uniform_plane(code)]
UNASSIGNED = [x for x in CHARACTERS if unicodedata.category(x) == "Cn"]
ASSIGNED = sorted(set(CHARACTERS) - set(UNASSIGNED))
ALONE, WITHIN_WORD = "{}", "a{}b"
# Lower-casing, accent stripping, Chinese characters alone: any two meet in all their four ways.
SWITCHES = [(True, True, True), (False, False, True), (True, False, False), (False, True, False)]


def listed_characters(name: str) -> set[str]:
    """The characters of a list in the guide."""
    listing = re.search(rf":name: {name}\n\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert listing is not None, f"the guide has no list named {name}"
    characters = set()
    for span in listing[1].split():
        first, _, last = span.partition("-")
        characters |= {chr(code) for code in range(int(first, 16), int(last or first, 16) + 1)}
    return characters


def expected_differences(*, lowercase: bool, strip_accents: bool) -> set[str]:
    """What the guide says, of assigned characters."""
    listed = listed_characters("newer-punctuation") | listed_characters("newer-format-characters")
    always = listed | listed_characters("moved") | listed_characters("cjk-extension-e")
    if strip_accents:
        return always | listed_characters("newer-marks") | listed_characters("moved-marks")
    return always | {x for x in ASSIGNED if is_changed_by_composition(x, lowercase)}


def is_changed_by_composition(character: str, lowercase: bool) -> bool:
    """Whether NFC matters; white space is a blank anyway, and lower-casing may do the same."""
    word = WITHIN_WORD.format(character)
    composed = unicodedata.normalize("NFC", word)
    if lowercase:
        word, composed = word.lower(), composed.lower()
    return word != composed and not character.isspace()


def test_characters_that_are_left_out_have_equal_properties():
    left_out = [chr(code) for code in CODES if is_within_uniform_plane(code)]
    text = "".join(left_out)
    assert {unicodedata.category(x) for x in left_out} == {"Cn", "Co"}
    assert unicodedata.normalize("NFKD", text) == text == text.lower()


def find_differences(ours: WordSplitter, reference: BasicTokenizer, form: str) -> set[str]:
    """Compare block by block, and one by one where a block differs."""
    found = set()
    for start in range(0, len(ASSIGNED), BLOCK_SIZE):
        block = ASSIGNED[start : start + BLOCK_SIZE]
        text = " ".join(form.format(character) for character in block)
        if ours.split(text) == reference.tokenize(text):
            continue
        for character in block:
            text = form.format(character)
            if ours.split(text) != reference.tokenize(text):
                found.add(character)
    return found


def show(characters: set[str]) -> list[str]:
    return [f"{ord(character):04X}" for character in sorted(characters)][:40]


@pytest.mark.exhaustive
@pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION,
    reason=f"the lists are those of Unicode {UNICODE_VERSION}, which Python 3.11 has",
)
@pytest.mark.parametrize(("lowercase", "strip_accents"), [*product((True, False), repeat=2)])
def test_every_code_point_but_those_listed_is_split_as_google_does(lowercase, strip_accents):
    ours = WordSplitter(TokenizerSettings(lowercase=lowercase, strip_accents=strip_accents))
    reference = BasicTokenizer(do_lower_case=lowercase, strip_accents=strip_accents)
    found = find_differences(ours, reference, ALONE) | find_differences(
        ours, reference, WITHIN_WORD
    )
    expected = expected_differences(lowercase=lowercase, strip_accents=strip_accents)
    assert show(found - expected) == []
    assert show(expected - found) == []


@pytest.fixture(scope="module", params=SWITCHES, ids=str)
def tokenizer(request):
    """One that knows each character, alone and within a word."""
    lowercase, strip_accents, split_cjk = request.param
    entries = [x for x in CHARACTERS if x.isprintable() and x != " "]
    return Tokenizer(
        [*SPECIAL_TOKENS, *entries, *(f"##{x}" for x in entries)],
        TokenizerSettings(lowercase=lowercase, strip_accents=strip_accents, split_cjk=split_cjk),
    )


def write_blocks(characters: list[str], form: str) -> list[str]:
    return [
        " ".join(form.format(x) for x in characters[start : start + BLOCK_SIZE])
        for start in range(0, len(characters), BLOCK_SIZE)
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", [ALONE, WITHIN_WORD])
def test_every_assigned_code_point_is_cut_in_segments_as_by_the_engine(tokenizer, form):
    texts = write_blocks(ASSIGNED, form)
    engine = build_engine(tokenizer.vocabulary, tokenizer.settings)
    expected = engine.encode_batch_fast(texts, add_special_tokens=False)
    assert tokenizer.piece_arrays(texts).to_lists() == [encoding.ids for encoding in expected]


@pytest.mark.exhaustive
def test_unassigned_code_points_are_kept_and_google_drops_them():
    ours, reference = WordSplitter(TokenizerSettings()), BasicTokenizer()
    for start in range(0, len(UNASSIGNED), BLOCK_SIZE):
        words = [WITHIN_WORD.format(x) for x in UNASSIGNED[start : start + BLOCK_SIZE]]
        assert len(ours.split(" ".join(words))) >= len(words)
        assert reference.tokenize(" ".join(words)) == ["ab"] * len(words)


@pytest.mark.parametrize(
    ("text", "lowercase", "strip_accents", "ours", "google"),
    [
        ("ΟΔΟΣ", True, True, ["οδοσ"], ["οδος"]),  # final sigma
        ("cafe\u0301", False, False, ["cafe\u0301"], ["caf\u00e9"]),  # decomposed
        ("a\U0002b820b", True, True, ["a\U0002b820b"], ["a", "\U0002b820", "b"]),
        ("a\u2e5db", True, True, ["a\u2e5db"], ["a", "\u2e5d", "b"]),  # newer punctuation
    ],
)
def test_a_listed_difference_is_as_the_guide_says(text, lowercase, strip_accents, ours, google):
    settings = TokenizerSettings(lowercase=lowercase, strip_accents=strip_accents)
    reference = BasicTokenizer(do_lower_case=lowercase, strip_accents=strip_accents)
    assert WordSplitter(settings).split(text) == ours
    assert reference.tokenize(text) == google
