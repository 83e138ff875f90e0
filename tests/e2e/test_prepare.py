"""`bertkit prepare`, as a user calls it."""

import io
import json
import signal
import string
import subprocess
import sys
from pathlib import Path

import pytest
from tests.exhaustive import mark_all_but
from tests.letters import letters_tokenizer, write_letters

from bertkit.cli.main import main
from bertkit.data.shards import ShardSet
from bertkit.recipes.prepare import plan
from bertkit.tokenization.tokenizer import Tokenizer

TEXT = "The first sentence. The second one.\nA third.\n\nAnother document. It ends.\n"


@pytest.fixture
def tokenizer(tmp_path):
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
    inputs = [tmp_path / "a.txt", tmp_path / "b.jsonl", "--text-column", "body"]
    assert run(tokenizer, tmp_path / "out", *inputs) == 0
    shown = capsys.readouterr().out
    place = f"{tmp_path.name}/a.txt"
    assert "train:          4 documents            5 sentences" in shown
    assert "held-out:          2 documents            2 sentences" in shown
    assert "ends of documents of a small corpus: 2; held out to evaluate on" in shown
    assert f"lines or records with invalid UTF-8: 1; replaced by U+FFFD ({place}:6)" in shown
    assert f"records without the field: 1; skipped ({tmp_path.name}/b.jsonl:2)" in shown
    assert "MB/s" in shown
    assert run(tokenizer, tmp_path / "out", *inputs) == 0
    assert "is already done" in capsys.readouterr().out
    assert ShardSet.open(tmp_path / "out", verify="all").manifest.train.sentences == 5


def test_json_is_all_that_is_printed(tokenizer, tmp_path, capsys):
    (tmp_path / "a.txt").write_text(TEXT)
    assert run(tokenizer, tmp_path / "out", tmp_path / "a.txt", "--json", "--seed", "3") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["train"]["sentences"] + facts["held_out"]["sentences"] == 5
    assert facts["settings"]["seed"] == 3
    assert facts["report"]["counts"] == {"cut-documents": 2}
    assert facts["was_done"] is False


def test_standard_input_is_prepared_once(tokenizer, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run(tokenizer, tmp_path / "out", "-") == 0
    assert "2 documents            3 sentences" in capsys.readouterr().out
    assert run(tokenizer, tmp_path / "out", "-") == 2
    assert "standard input, which can't be read again" in capsys.readouterr().err


def test_what_cant_be_used_is_one_line_and_exit_2(tokenizer, tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"good\nbad \xff\n")
    for inputs, message in [
        ([tmp_path / "nothing.txt"], "nothing.txt doesn't exist"),
        ([tmp_path / "a.txt", "--max-broken", "0"], "a.txt:2: --max-broken 0 allows no lines"),
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


# A terminal's Ctrl-C goes to all processes at once: to a worker amid a unit, the other one and the
# one that waits for them. Workers import this script, too, and the third unit sends the signal.
STOPPED = """
import os, sys
from bertkit.base import progress
from bertkit.cli.main import main
from bertkit.recipes.prepare import plan, work_unit

def prepare_unit(folder, number, *rest):
    *rest, advance = rest
    def send(num_bytes):
        if number == 2:
            os.killpg(0, {sent})
        advance(num_bytes)
    original(folder, number, *rest, send)

original, work_unit.prepare_unit = work_unit.prepare_unit, prepare_unit
plan.UNIT_BYTES = 1  # a unit for each file
progress.LINE_INTERVAL_SECONDS = float("inf")  # however slow it is, it says one thing
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("sent", mark_all_but([signal.SIGINT], [signal.SIGINT, signal.SIGTERM]))
def test_stopping_is_clean_and_the_same_command_goes_on(tmp_path, monkeypatch, sent):
    letters_tokenizer().save(tmp_path / "tokenizer")
    write_letters(tmp_path / "many", "abcdefgh", 20)
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED.format(sent=int(sent)))
    words = [tmp_path / "many", "--tokenizer", tmp_path / "tokenizer", "--output", tmp_path / "out"]
    stopped = subprocess.run(
        [sys.executable, script, "prepare", *words, "--workers", "2"],
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert stopped.returncode == 75, stopped.stderr
    assert "run the same command to resume" in stopped.stderr
    assert len(stopped.stderr.strip().splitlines()) == 1, stopped.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    monkeypatch.setattr(plan, "UNIT_BYTES", 1)
    for name in ("out", "whole"):
        rest = (tmp_path / name, tmp_path / "many", "--workers", "1")
        assert run(tmp_path / "tokenizer", *rest) == 0
    assert read_files(tmp_path / "out") == read_files(tmp_path / "whole")


def read_files(folder: Path) -> dict[Path, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("num_documents", "objective"),
    [(1, "mlm"), (2, "mlm"), (2, "bert"), (9, "mlm"), (9, "bert")],
)
def test_what_prepare_finishes_pretrain_takes(tokenizer, tmp_path, num_documents, objective):
    lines = "It goes on.\nIt does so.\n" * 4
    text = "\n".join(f"This is text {n}.\n{lines}" for n in range(num_documents))
    (tmp_path / "a.txt").write_text(text)
    assert run(tokenizer, tmp_path / "out", tmp_path / "a.txt", "--held-out", "0.00001") == 0
    words = ["--data", tmp_path / "out", "--output", tmp_path / "run", "--objective", objective]
    sizes = ["--size", "tiny", "--steps", "1", "--max-length", "16", "--batch-size", "2"]
    assert main(["pretrain", *map(str, words), *sizes]) == 0
