"""Windows, batches and the thread that encodes ahead."""

import threading

import pytest

from bertkit.base.errors import InputError, StorageError
from bertkit.inference import stream
from bertkit.inference.stream import TextCounts, TextEncoder, cut_windows, encode_ahead
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

TOKENIZER = Tokenizer([*SPECIAL_TOKENS, "a", "b", "c", "d", "seek", ":"])
CLS, SEP, UNK = TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.unk_id
A, B, C, D = (TOKENIZER.token_to_id(letter) for letter in "abcd")


@pytest.mark.parametrize(
    ("texts", "ids", "counts"),
    [
        (["a b", "c"], [[A, B], [C]], {"text_tokens": 3}),
        (["", "  ", "\u200b", "\N{REPLACEMENT CHARACTER}"], [[]] * 4, {"empty": 4}),
        (["zebra x"], [[UNK, UNK]], {"text_tokens": 2, "unknown_tokens": 2, "unknown_only": 1}),
        (["a x"], [[A, UNK]], {"text_tokens": 2, "unknown_tokens": 1}),
        (["a\0 b", "\0"], [[A, B], []], {"text_tokens": 2, "with_nul": 2, "empty": 1}),
        (["a b c d"], [[A, B, C]], {"text_tokens": 4, "truncated": 1}),
    ],
)
def test_texts_are_framed_cut_and_counted(texts, ids, counts):
    found = TextEncoder(TOKENIZER, max_length=5)(texts)
    assert found.ids == [[CLS, *inner, SEP] for inner in ids]
    assert found.owners == list(range(len(texts)))
    assert not any(found.num_skipped)
    num_tokens = sum(map(len, found.ids))
    assert found.counts == TextCounts(texts=len(texts), tokens=num_tokens, **counts)


def test_the_start_of_a_long_text_may_be_cut_off_but_not_its_prompt():
    encoder = TextEncoder(TOKENIZER, max_length=5, prompt="seek ", keeps_end=True)
    seek = TOKENIZER.token_to_id("seek")
    assert encoder(["a b c", "a"]).ids == [[CLS, seek, B, C, SEP], [CLS, seek, A, SEP]]
    assert encoder(["a b c"]).counts.truncated == 1


@pytest.mark.parametrize(
    ("text", "stride", "parts"),
    [
        ("a b", 1, [[A, B]]),
        ("a b c", 1, [[A, B], [B, C]]),
        ("a b c", 2, [[A, B], [C]]),
        ("a b c d", 1, [[A, B], [B, C], [C, D]]),
        ("a b c d", 2, [[A, B], [C, D]]),
    ],
)
def test_a_long_text_is_read_in_parts_that_reach_its_end(text, stride, parts):
    found = TextEncoder(TOKENIZER, max_length=4, stride=stride)(["c", text])
    assert found.ids == [[CLS, C, SEP], *([CLS, *part, SEP] for part in parts)]
    assert found.owners == [0, *([1] * len(parts))]
    assert (found.counts.windowed, found.counts.truncated) == (int(len(parts) > 1), 0)


def test_a_prompt_comes_first_and_may_be_left_out_of_the_vector():
    counted = TextEncoder(TOKENIZER, max_length=9, prompt="seek: ")(["a", ""])
    assert [len(ids) for ids in counted.ids] == [5, 4]
    assert counted.num_skipped == [0, 0]
    assert counted.counts.empty == 1
    skipped = TextEncoder(TOKENIZER, max_length=9, prompt="seek: ", skips_prompt=True)
    assert skipped(["a", ""]).num_skipped == [3, 3]
    in_parts = TextEncoder(TOKENIZER, 5, stride=2, prompt="seek: ", skips_prompt=True)
    assert in_parts(["a b c"]).num_skipped == [3, 0]
    short = TextEncoder(TOKENIZER, max_length=3, prompt="seek: ", skips_prompt=True)(["a"])
    assert (short.ids[0][1:-1], short.num_skipped) == ([TOKENIZER.token_to_id("seek")], [2])


def test_lower_case_is_made_before_the_tokenizer_where_the_folder_says_so():
    cased = Tokenizer(
        [*SPECIAL_TOKENS, "a"], TOKENIZER.settings.model_copy(update={"lowercase": False})
    )
    assert TextEncoder(cased, max_length=5)(["A"]).ids == [[CLS, UNK, SEP]]
    assert TextEncoder(cased, max_length=5, lowercase=True)(["A"]).ids == [[CLS, 5, SEP]]


def test_a_window_ends_at_its_number_of_texts(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 3)
    assert list(cut_windows("abcdefg")) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert list(cut_windows([])) == []


def test_a_window_of_long_texts_ends_early(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_CHARS", 4)
    assert list(cut_windows(["ab", "cd", "efghi", "j"])) == [["ab", "cd"], ["efghi"], ["j"]]


def test_windows_from_a_windows_beginning_are_the_same(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 3)
    monkeypatch.setattr(stream, "WINDOW_CHARS", 5)
    texts = ["a", "bb", "ccc", "d", "e", "f", "g"]
    windows = list(cut_windows(texts))
    done = len(windows[0])
    assert list(cut_windows(texts[done:])) == windows[1:]


def test_a_window_ends_early_before_a_text_at_fault_alone():
    def torn():
        yield "first"
        raise StorageError("the disk is gone")  # and whoever goes on begins at a window

    with pytest.raises(StorageError):
        next(cut_windows(torn()))


def test_only_the_next_window_is_read_ahead():
    read = []

    def watched():
        for number in range(5):
            read.append(number)
            yield [str(number)]

    results = encode_ahead(watched(), lambda window: window[0])
    assert next(results) == "0"
    assert read == [0, 1]
    assert list(results) == ["1", "2", "3", "4"]


def test_encoding_happens_in_another_thread_and_its_error_arrives():
    threads = set()

    def encode(window):
        threads.add(threading.current_thread())
        if window == ["bad"]:
            raise ValueError("no such word")
        return window

    with pytest.raises(ValueError, match="no such word"):
        list(encode_ahead(iter([["good"], ["bad"]]), encode))
    assert threading.current_thread() not in threads


def test_token_ids_are_taken_as_they_are_and_cut_and_prompted_as_texts():
    mask = TOKENIZER.mask_id
    inner = [A, UNK, mask, SEP, B]
    encoder = TextEncoder(TOKENIZER, max_length=9, lowercase=True)
    found = encoder([[CLS, *inner, SEP], (CLS, SEP), [CLS, UNK, SEP], "B"])
    assert found.ids == [[CLS, *inner, SEP], [CLS, SEP], [CLS, UNK, SEP], [CLS, B, SEP]]
    assert found.counts == TextCounts(
        texts=4, tokens=15, text_tokens=7, unknown_tokens=2, empty=1, unknown_only=1
    )
    encoder = TextEncoder(TOKENIZER, max_length=5, prompt="seek ", skips_prompt=True)
    found = encoder([[CLS, *inner, SEP]])
    assert found.ids == [[CLS, TOKENIZER.token_to_id("seek"), A, UNK, SEP]]
    assert (found.num_skipped, found.counts.truncated) == ([2], 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([CLS, A], "must be those of this model's tokenizer, from 2 .*send texts instead"),
        ([SEP], "must be those of this model's tokenizer"),
        ([], "must be those of this model's tokenizer"),
        ([CLS, 11, SEP], "token ids go from 0 to 10, got 11"),
        ([CLS, -1, SEP], "token ids go from 0 to 10, got -1"),
        (["a", "b"], "expected a text, got .'a', 'b'."),
        ([CLS, 5.0, SEP], "expected a text, got "),
        (7, "expected a text, got 7"),
    ],
)
def test_what_is_neither_a_text_nor_token_ids_is_refused(value, message):
    with pytest.raises(InputError, match=message):
        TextEncoder(TOKENIZER, max_length=5).check(value)
