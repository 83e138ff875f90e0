"""A small corpus and a tokenizer of letters."""

import string
from pathlib import Path

import pytest

from bertkit.recipes.prepare import plan
from bertkit.tokenization.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)  # two files each


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    letters = [*string.ascii_lowercase, *string.digits, "."]
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    Tokenizer([*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]).save(folder)
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Six files of twenty documents of three sentences."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for file in "abcdef":
        documents = [
            f"file {file} has document {number}. it goes on.\nand it ends here.\n"
            for number in range(20)
        ]
        (folder / f"{file}.txt").write_text("\n".join(documents))
    return folder
