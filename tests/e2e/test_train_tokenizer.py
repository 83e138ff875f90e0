"""`bertkit train-tokenizer`, as a user calls it."""

import gzip
import json
from pathlib import Path

import pytest

from bertkit.base.checksums import FileRecord, verify_file
from bertkit.cli.main import main
from bertkit.tokenization import training
from bertkit.tokenization.tokenizer import Tokenizer

TEXT = """The cat sat on the mat. The other cat sat there, too.
Another mat, another cat.

Mats are what cats sit on, and the cats know that.
"""


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "one.txt").write_text(TEXT)
    (folder / "two.txt.gz").write_bytes(gzip.compress(b"Zebras are not cats.\n" * 3))
    return folder


def run(*words: str | Path) -> int:
    return main(["train-tokenizer", *map(str, words)])


def test_a_folder_of_text_becomes_a_tokenizer(corpus, tmp_path, capsys):
    output = tmp_path / "tokenizer"
    assert run(corpus, "--vocab-size", "55", "--output", output) == 0
    shown = capsys.readouterr().out
    assert "55 entries from 49 words" in shown
    tokenizer = Tokenizer.load(output)
    assert tokenizer.vocab_size == 55
    assert tokenizer.encode("the cat").tokens[1:-1] == ["the", "cat"]
    assert "z" in tokenizer.vocabulary

    facts = json.loads((output / "training.json").read_text())
    assert facts["fingerprint"] == tokenizer.fingerprint
    assert facts["settings"]["vocab_size"] == 55
    assert facts["counts"]["lines"] == 6
    manifest = json.loads((output / "tokenizer_manifest.json").read_text())
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        verify_file(output / name, FileRecord.model_validate(manifest["files"][name]))


def test_json_is_all_that_is_printed(corpus, tmp_path, capsys):
    output = tmp_path / "tokenizer"
    assert run(corpus, "--no-lowercase", "--vocab-size", "9999", "--output", output, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["entries"] < 9999
    assert facts["words"] == 49
    assert Tokenizer.load(output).settings.lowercase is False
    assert "The" in Tokenizer.load(output).vocabulary


def test_a_smaller_vocabulary_than_asked_is_said_so(corpus, tmp_path, capsys):
    assert run(corpus, "--output", tmp_path / "tokenizer") == 0
    assert "30,522: no other pieces occur at least" in capsys.readouterr().out


def test_forgotten_words_are_said_so(corpus, tmp_path, capsys, monkeypatch):
    output = tmp_path / "tokenizer"
    monkeypatch.setattr(training, "MAX_DISTINCT_WORDS", 10)
    assert run(corpus, "--output", output) == 0
    assert "of rare words" in capsys.readouterr().out
    assert json.loads((output / "training.json").read_text())["counts"]["forgotten_words"] > 0


def test_an_older_tokenizer_stays_unless_asked(corpus, tmp_path, capsys):
    output = tmp_path / "tokenizer"
    assert run(corpus, "--output", output) == 0
    before = (output / "vocab.txt").read_bytes()
    assert run(corpus, "--vocab-size", "50", "--output", output) == 2
    assert "add --overwrite" in capsys.readouterr().err
    assert (output / "vocab.txt").read_bytes() == before
    assert run(corpus, "--vocab-size", "50", "--output", output, "--overwrite") == 0
    assert Tokenizer.load(output).vocab_size == 50


def test_other_peoples_folders_are_never_replaced(corpus, tmp_path, capsys):
    assert run(corpus, "--output", corpus, "--overwrite") == 2
    assert "is the input, and would be overwritten" in capsys.readouterr().err
    assert (corpus / "one.txt").read_text() == TEXT
    output = tmp_path / "tokenizer"
    assert run(corpus, "--output", output) == 0
    (output / "thesis.txt").write_text("mine")
    capsys.readouterr()
    assert run(corpus, "--output", output, "--overwrite") == 2
    assert "something other than a tokenizer (thesis.txt); name" in capsys.readouterr().err
    assert (output / "thesis.txt").read_text() == "mine"
    for name in ("thesis.txt", "training.json"):
        (output / name).unlink()
    assert run(corpus, "--output", output, "--overwrite") == 2
    assert "something other than a tokenizer (no training.json)" in capsys.readouterr().err
