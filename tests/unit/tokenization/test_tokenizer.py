import time

import numpy as np
import pandas as pd
import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.tokenization.encoding import cut_longest_first
from bertkit.tokenization.engine import SPECIAL_TOKENS, KnownChunks, build_engine
from bertkit.tokenization.settings import UNCASED, TokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer

VOCABULARY = (*SPECIAL_TOKENS, *"abcdefghijklmnopqrstuvwxyz.,[]É中", "##s", "the", "cat", "##er")


@pytest.fixture
def tokenizer():
    return Tokenizer(VOCABULARY)


def test_single_and_pair_have_types_and_offsets(tokenizer):
    encoding = tokenizer.encode("The cats", "A.")
    assert encoding.tokens == ["[CLS]", "the", "cat", "##s", "[SEP]", "a", ".", "[SEP]"]
    assert encoding.token_type_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    assert encoding.offsets == [(0, 0), (0, 3), (4, 7), (7, 8), (0, 0), (0, 1), (1, 2), (0, 0)]
    assert [tokenizer.vocabulary[index] for index in encoding.ids] == encoding.tokens
    assert tokenizer.encode("The cats").token_type_ids == [0, 0, 0, 0, 0]


def test_offsets_count_characters_of_the_original_text(tokenizer):
    text = "e\u0301 \x00中👍 the"
    encoding = tokenizer.encode(text)
    found = [text[start:stop] for start, stop in encoding.offsets[1:-1]]
    assert found[1:] == ["中", "👍", "the"]
    assert encoding.tokens[1:-1] == ["e", "中", "[UNK]", "the"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("U.S. isn't it", ["U", ".", "S", ".", "isn", "'", "t", "it"]),
        ("cafe\u0301, e\u0301te\u0301", ["cafe\u0301", ",", "e\u0301te\u0301"]),
        ("में", ["में"]),
        ("!\u0301", ["!\u0301"]),
        ("the\u200bcat \x00 a\x01", ["the\u200bcat", "a"]),
        ("中the", ["中", "the"]),
        (f"a{'b' * 200} the", [f"a{'b' * 200}", "the"]),
        ("[UNK]", ["[", "UNK", "]"]),
        ("\ud800 \ud800s", ["s"]),
        (" \n", []),
        ("", []),
    ],
)
def test_words_stand_where_they_were_written(tokenizer, text, words):
    assert [text[start:stop] for start, stop in tokenizer.find_words(text)] == words


def test_a_mark_of_a_tokenizer_with_accents_is_what_its_pieces_are():
    cased = Tokenizer(VOCABULARY, TokenizerSettings(lowercase=False, strip_accents=False))
    assert cased.find_words("e\u0301 !\u0301") == [(0, 2), (3, 4), (4, 5)]


def test_only_read_mask_reads_the_mask(tokenizer):
    encoding = tokenizer.encode("the [MASK]. [SEP]", read_mask=True)
    assert encoding.tokens[1:5] == ["the", "[MASK]", ".", "["]
    assert encoding.offsets[2] == (4, 10)
    assert encoding.ids.count(tokenizer.sep_id) == 1
    batch = tokenizer.encode_batch(["the [MASK]. [SEP]"], read_mask=True)
    assert batch.input_ids.tolist() == [encoding.ids]
    assert tokenizer.mask_id not in tokenizer.encode_batch(["the [MASK]"]).input_ids


@pytest.mark.parametrize(
    ("length_a", "length_b", "budget", "kept"),
    [
        (3, 2, 5, (3, 2)),
        (10, 2, 5, (3, 2)),
        (2, 10, 5, (2, 3)),
        (10, 10, 5, (3, 2)),
        (10, 10, 4, (2, 2)),
        (7, 0, 4, (4, 0)),
        (1, 1, 1, (1, 0)),
        (4, 4, 0, (0, 0)),
    ],
)
def test_the_longer_text_is_cut_first(length_a, length_b, budget, kept):
    assert cut_longest_first(length_a, length_b, budget) == kept


def test_max_length_counts_special_tokens(tokenizer):
    assert tokenizer.encode("a b c d", max_length=4).tokens == ["[CLS]", "a", "b", "[SEP]"]
    cut = tokenizer.encode("a b c d", "x y", max_length=6)
    assert cut.tokens == ["[CLS]", "a", "b", "[SEP]", "x", "[SEP]"]
    with pytest.raises(SettingsError, match="no room for the 3 special tokens of a pair"):
        tokenizer.encode("a", "b", max_length=2)


def test_a_batch_is_padded_with_its_mask(tokenizer):
    batch = tokenizer.encode_batch(["the cat", "a"], ["b", "c d e"], pad_to=7)
    assert batch.input_ids.dtype == np.int64
    assert batch.input_ids.shape == (2, 7)
    assert batch.input_ids[0].tolist() == [*tokenizer.encode("the cat", "b").ids, 0]
    assert batch.attention_mask.tolist() == [[1] * 6 + [0], [1] * 7]
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]


def test_a_batch_without_padding_length_is_as_long_as_its_longest(tokenizer):
    assert tokenizer.encode_batch(["a b", "a"]).input_ids.shape == (2, 4)
    assert tokenizer.encode_batch(["a b", "a"], pad_to=9).input_ids.shape == (2, 9)
    assert tokenizer.encode_batch(["a b", "a"], max_length=9).input_ids.shape == (2, 4)
    assert tokenizer.encode_batch([]).input_ids.shape == (0, 0)


def test_a_batch_needs_as_many_pairs(tokenizer):
    with pytest.raises(InputError, match="as many pairs as texts \\(2\\), got 1"):
        tokenizer.encode_batch(["a", "b"], ["c"])


@pytest.mark.parametrize("values", [(None,), (b"the",), ("the", 5)])
def test_what_isnt_a_text_is_refused(tokenizer, values):
    with pytest.raises(InputError, match=r"expected a text, got (None|b'the'|5) \((None|byt|int)"):
        tokenizer.encode(*values)
    with pytest.raises(InputError, match="expected a text, got"):
        tokenizer.encode_batch(*([value] for value in values))


@pytest.mark.parametrize(
    "texts",
    [5, b"the", {"text": ["the"]}, {"the"}, pd.DataFrame({"text": ["the"]}), np.array("the")],
)
def test_what_isnt_a_list_of_texts_is_refused(tokenizer, texts):
    message = f"^expected a list of texts, got {type(texts).__name__}$"
    with pytest.raises(InputError, match=message):
        tokenizer.encode_batch(texts)


def test_a_batch_isnt_one_text(tokenizer):
    for values in (("the cat",), (["a", "b"], "ab")):
        with pytest.raises(InputError, match="got one text; put it into a list"):
            tokenizer.encode_batch(*values)


def test_three_switches_are_independent():
    vocabulary = (*SPECIAL_TOKENS, "é", "e", "É", "E", "中", "##中")
    found = {}
    for lowercase in (True, False):
        for strip_accents in (True, False):
            settings = TokenizerSettings(lowercase=lowercase, strip_accents=strip_accents)
            found[lowercase, strip_accents] = Tokenizer(vocabulary, settings).encode("É").tokens[1]
    expected = {(True, True): "e", (True, False): "é", (False, True): "E", (False, False): "É"}
    assert found == expected
    unsplit = Tokenizer(vocabulary, TokenizerSettings(split_cjk=False))
    assert unsplit.encode("中中").tokens[1:-1] == ["中", "##中"]
    assert Tokenizer(vocabulary).encode("中中").tokens[1:-1] == ["中", "中"]


def test_decode_joins_pieces_and_skips_special_tokens(tokenizer):
    assert tokenizer.decode(tokenizer.encode("The cats, a cat.").ids) == "the cats, a cat."
    with pytest.raises(InputError, match="token ids go from 0 to"):
        tokenizer.decode([len(VOCABULARY)])
    with pytest.raises(InputError, match="got -1"):
        tokenizer.decode([-1])


def test_marks_and_special_tokens_are_no_characters_of_the_text(tokenizer):
    encoding = tokenizer.encode("The cats")
    assert tokenizer.token_lengths[encoding.ids].tolist() == [0, 3, 3, 1, 0]


def test_the_fingerprint_tells_vocabulary_and_switches_apart(tokenizer):
    others = [Tokenizer(VOCABULARY[:-1]), Tokenizer(VOCABULARY, TokenizerSettings(lowercase=False))]
    assert len({tokenizer.fingerprint, *(other.fingerprint for other in others)}) == 3
    assert Tokenizer(VOCABULARY).fingerprint == tokenizer.fingerprint


def test_known_chunks_stay_bounded_and_right():
    engine = build_engine(VOCABULARY, UNCASED)
    table = KnownChunks(engine, max_chunks=3)
    chunks = ["the", "cat", "cats.", "a,b", "the", "x" * 200, "[cat]"]
    for chunk in chunks * 2:
        assert list(table[chunk]) == engine.encode(chunk, add_special_tokens=False).ids
        assert len(table) <= 4
        assert "x" * 200 not in table


@pytest.mark.parametrize(
    "unit",
    ["a", "\u0301", "a\u0323\u0301", ".", "中", " ", "a ", "\x00", "\ud800"],
    ids=["word", "marks", "stacked", "punctuation", "cjk", "blanks", "letters", "nul", "half"],
)
def test_time_is_linear_in_the_text(tokenizer, unit):
    whole = unit * (400_000 // len(unit.encode("utf-8", "surrogatepass")))
    part, all_of_it = (measure(tokenizer, text) for text in (whole[: len(whole) // 16], whole))
    assert all_of_it < 64 * part + 0.1  # 16, were every second alike, and 256 for a square


def measure(tokenizer: Tokenizer, text: str) -> float:
    """The least of three times: what else the machine does only adds to one."""
    times = []
    for _ in range(3):
        start = time.process_time()
        tokenizer.piece_ids([text])
        tokenizer.encode(text)
        times.append(time.process_time() - start)
    return min(times)


def test_characters_of_words_that_are_too_long_are_counted(tokenizer):
    for text, number in (
        ("b" * 100 + " c", 0),
        ("c " + "b" * 101 + " c " + "d" * 102, 203),
        ("天" * 300, 0),
        ("天" + "b" * 101 + "地", 101),
        ("ひ" * 101, 101),
    ):
        assert tokenizer.count_in_long_words(text) == number
    whole = Tokenizer(tokenizer.vocabulary, TokenizerSettings(split_cjk=False))
    assert whole.count_in_long_words("天" * 300) == 300
