"""Texts that begin with hyphens, stand in files, or are none."""

import io
import json
import sys
from pathlib import Path

import pytest
from tests.unit.inference.small import save_small

from bertkit.base.errors import InputError
from bertkit.cli import texts as module
from bertkit.cli.main import main
from bertkit.inference import stream


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("small")
    save_small(folder)
    return str(folder)


@pytest.fixture
def fails(capsys):
    """The one line that a wrong call prints."""

    def call(*words: str) -> str:
        assert main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return call


@pytest.mark.parametrize(
    "words",
    [
        ["- a [MASK]"],
        ["-5 [MASK]"],
        ["--a is a [MASK]"],
        ["--", "--a is a [MASK]"],
        ["a [MASK]", "--device", "cpu", "--", "--[MASK]"],
    ],
)
def test_a_text_may_begin_with_hyphens(model, capsys, words):
    assert main(["fill-mask", model, *words]) == 0
    assert words[-1] in capsys.readouterr().out.splitlines()


def test_text_of_the_command_line_is_mended(model, capsys):
    assert main(["fill-mask", model, "a \udcff [MASK]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "a \ufffd [MASK]"
    assert main(["next-sentence", model, "a \udcff", "the hät", "--json"]) == 0
    assert '{"first": "a \ufffd", "second": "the hät", ' in capsys.readouterr().out


@pytest.mark.parametrize("words", [["- a cat", "the hat"], ["a", "--device", "cpu", "--", "- hat"]])
def test_a_sentence_may_begin_with_a_hyphen(model, capsys, words):
    assert main(["next-sentence", model, *words]) == 0
    assert capsys.readouterr().out.endswith("% probability that it follows\n")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["fill-mask", "MODEL", "a [MASK]", "--topk"], "--topk"),
        (["fill-mask", "MODEL", "a [MASK]", "--topk=3"], "--topk"),
        (["fill-mask", "MODEL", "a [MASK]", "--Top_K", "3"], "--Top_K"),
        (["next-sentence", "MODEL", "a cat", "--jsn"], "--jsn"),
        (["next-sentence", "MODEL", "a cat", "the hat", "--jsn"], "--jsn"),
    ],
)
def test_a_misspelled_flag_is_no_text(model, fails, words, option):
    assert option in fails(*(model if word == "MODEL" else word for word in words))


def test_empty_sentences_are_refused(model, fails):
    assert "pair 1 has an empty text" in fails("next-sentence", model, "", "")


def test_an_error_names_the_line(model, fails, tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_text("a [MASK]\r\n\n  \na cat\n")
    assert f"line 4 of {path} ('a cat') has no" in fails("fill-mask", model, "--file", str(path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\na dog")))
    assert "line 2 of standard input ('a dog') has" in fails("fill-mask", model, "a [MASK]", "-")
    assert "text 2 ('a hat') has no" in fails("fill-mask", model, "a [MASK]", "a hat")


def test_texts_that_cannot_be_read_are_refused(model, fails, tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"a\xff")
    assert "isn't UTF-8 at byte 1" in fails("fill-mask", model, "--file", str(path))
    path.write_text(" \n")
    assert "there is no text" in fails("fill-mask", model, "--file", str(path))
    assert "can't be read" in fails("fill-mask", model, "--file", str(tmp_path))
    monkeypatch.setattr(module, "LIMIT_BYTES", 1 << 20)
    path.write_bytes(b"\n" + b"a" * (1 << 20) + b"\n")
    message = "has more than 1 MiB; give one text per line"
    assert f"line 2 of {path} {message}" in fails("fill-mask", model, "--file", str(path))


def test_texts_before_one_that_cannot_be_read_are_answered(model, tmp_path, capsys):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"a [MASK]\r\na" + b"\xff" + b"a\n")
    assert main(["fill-mask", model, "--file", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("a [MASK]\n")
    assert "isn't UTF-8 at byte 11" in captured.err


def test_lines_are_read_when_their_turn_comes(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"a\r\n\n\xc3\xa9\n\xff\n")
    gathered = module.gather_texts(["one"], path)
    found = [next(gathered) for _ in range(3)]
    assert found == [("text 1", "one"), (f"line 1 of {path}", "a"), (f"line 3 of {path}", "é")]
    with pytest.raises(InputError, match="isn't UTF-8 at byte 7"):
        next(gathered)


def test_a_byte_order_mark_is_no_part_of_the_first_text(tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffa\n\ufeffb\n".encode() + b"\xff\n")
    gathered = module.gather_texts([], path)
    assert [next(gathered)[1] for _ in range(2)] == ["a", "\ufeffb"]
    with pytest.raises(InputError, match="isn't UTF-8 at byte 10"):
        next(gathered)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeffa\n".encode())))
    assert list(module.gather_texts(["-"], None)) == [("line 1 of standard input", "a")]


def test_standard_input_may_be_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is no standard input; name a file of texts"):
        module.gather_texts(["-"], None)
    with pytest.raises(InputError, match="there is no text"):
        module.gather_texts([], None)


def test_what_is_text_is_printed_and_what_steers_a_terminal_is_not():
    text = "10\u202f%\u00a0\u3000 \u0646\u200c\u0647 \U0001f469\u200d\U0001f52c co\u00adop"
    assert module.legible(f"{text}\n\t") == f"{text}\n\t"
    assert module.printable(text) == text
    for steering in "\x1b\x07\x7f\x9b\r\u202e\u2066\u200f\ufeff\u2028\u2029\ud800":
        assert module.legible(steering) == module.printable(steering) == "\ufffd"
    assert module.printable("\n\t") == "\ufffd\ufffd"


def test_blanks_are_printed_as_they_are_filled(model, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)
    path = tmp_path / "texts.txt"
    path.write_text("a [MASK]\nthe [MASK]\n" * 2 + "no blank\n")
    assert main(["fill-mask", model, "--file", str(path), "--top-k", "1"]) == 2
    captured = capsys.readouterr()
    assert captured.out.splitlines()[::2] == ["a [MASK]", "the [MASK]"] * 2
    assert f"line 5 of {path} ('no blank') has no" in captured.err


def test_a_terminal_shows_results_and_no_bar(model, capsys, monkeypatch):
    words = ["fill-mask", model, "a [MASK]", "[MASK] [MASK]"]
    assert main(words) == 0
    piped = capsys.readouterr()
    assert len(piped.err.splitlines()) == 1  # the precision
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    assert capsys.readouterr() == piped
