"""Windows, batches and the thread that encodes ahead."""

import threading

import pytest

from bertkit.base.errors import InputError, StorageError
from bertkit.inference import stream
from bertkit.inference.stream import cut_windows, encode_ahead


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


def test_texts_before_one_that_cannot_be_read_are_a_window():
    def broken():
        yield from ("first", "second")
        raise InputError("row 3 is no text")

    windows = cut_windows(broken())
    assert next(windows) == ["first", "second"]
    with pytest.raises(InputError, match="row 3"):
        next(windows)


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


def test_what_was_read_before_a_bad_window_is_given_first():
    def broken():
        yield ["first"]
        yield ["second"]
        raise InputError("row 3 is no text")

    results = encode_ahead(broken(), lambda window: window[0])
    assert [next(results), next(results)] == ["first", "second"]
    with pytest.raises(InputError, match="row 3"):
        next(results)
