"""`bertkit prepare`, as a user calls it."""

import io
import json
import os
import signal
import string
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertkit.cli.main import main
from bertkit.data.shards import ShardSet
from bertkit.tokenization.tokenizer import Tokenizer

TEXT = "The first sentence. The second one.\nA third.\n\nAnother document. It ends.\n"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    letters = [*string.ascii_lowercase, "."]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    Tokenizer([*special, *letters, *(f"##{letter}" for letter in letters)]).save(folder)
    return folder


def run(tokenizer: Path, output: Path, *words: str | Path) -> int:
    fixed = ["--tokenizer", tokenizer, "--output", output]
    return main(["prepare", *map(str, [*words, *fixed])])


def test_text_becomes_shards_with_a_summary(tokenizer, tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(TEXT.encode() + b"\nbad \xff byte.\n")
    (tmp_path / "b.jsonl").write_text('{"body": "From a field."}\n{"text": "not this"}\n')
    inputs = [tmp_path / "a.txt", tmp_path / "b.jsonl", "--field", "body"]
    assert run(tokenizer, tmp_path / "out", *inputs) == 0
    shown = capsys.readouterr().out
    place = f"{tmp_path.name}/a.txt"
    assert "train:          4 documents            7 sentences" in shown
    assert f"1 lines or records with invalid UTF-8: replaced by U+FFFD ({place}:6)" in shown
    assert f"1 records without the field: skipped ({tmp_path.name}/b.jsonl:2)" in shown
    assert "no document was held out; take a larger --held-out" in shown
    assert "MB/s" in shown
    assert run(tokenizer, tmp_path / "out", *inputs) == 0
    assert "was done already" in capsys.readouterr().out
    assert ShardSet.open(tmp_path / "out", verify="all").manifest.train.sentences == 7


def test_json_is_all_that_is_printed(tokenizer, tmp_path, capsys):
    (tmp_path / "a.txt").write_text(TEXT)
    assert run(tokenizer, tmp_path / "out", tmp_path / "a.txt", "--json", "--seed", "3") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["train"]["documents"] + facts["held_out"]["documents"] == 2
    assert facts["settings"]["seed"] == 3
    assert facts["report"]["counts"] == {}
    assert facts["was_done"] is False


def test_standard_input_is_prepared_once(tokenizer, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run(tokenizer, tmp_path / "out", "-", "--held-out", "0") == 0
    assert "2 documents            5 sentences" in capsys.readouterr().out
    assert run(tokenizer, tmp_path / "out", "-", "--held-out", "0") == 2
    assert "standard input, which can't be read again" in capsys.readouterr().err


def test_what_cant_be_used_is_one_line_and_exit_2(tokenizer, tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"good\nbad \xff\n")
    for inputs, message in [
        ([tmp_path / "nothing.txt"], "nothing.txt doesn't exist"),
        ([tmp_path / "a.txt", "--strict"], "a.txt:2: --strict refuses"),
        ([tmp_path / "a.txt", "--held-out", "1"], "held"),
        ([tmp_path / "a.txt", "--format", "pdf"], "format"),
        ([], "no input"),
    ]:
        assert run(tokenizer, tmp_path / "out", *inputs) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert len(captured.err.splitlines()) == 1
    assert run(tmp_path / "no-tokenizer", tmp_path / "new", tmp_path / "a.txt") == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_stopping_is_clean_and_the_same_command_goes_on(tokenizer, tmp_path, sent):
    source = tmp_path / "many"
    source.mkdir()
    for number in range(2):  # each a unit of its own
        line = " ".join(f"word{chr(97 + i % 26)}{chr(97 + number)}" for i in range(1000)) + ".\n"
        (source / f"{number}.txt").write_text((line * 200 + "\n") * 7)
    words = [sys.executable, "-m", "bertkit", "prepare", source, "--workers", "2"]
    words += ["--tokenizer", tokenizer, "--output", tmp_path / "out"]
    started = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while started.poll() is None and not (tmp_path / "out" / "units").exists():
        time.sleep(0.05)
    time.sleep(0.7)
    os.killpg(started.pid, sent)  # as a terminal does, to all processes at once
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 75, errors
    assert "the same command goes on" in errors
    assert len(errors.strip().splitlines()) == 1, errors
    finished = subprocess.run(words, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert run(tokenizer, tmp_path / "whole", source, "--workers", "1") == 0
    for path in (tmp_path / "whole").rglob("*"):
        if path.is_file():
            assert (
                path.read_bytes()
                == (tmp_path / "out" / path.relative_to(tmp_path / "whole")).read_bytes()
            )
    assert not list((tmp_path / "out").rglob("*.partial"))
