"""`bertkit prepare`, as a user calls it."""

import json
import string
from pathlib import Path

import pytest

from bertkit.cli.main import main
from bertkit.data.shards import ShardSet
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
