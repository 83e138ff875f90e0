"""A small corpus and a tokenizer of letters."""

import pytest
from tests.letters import letters_tokenizer, write_letters

from bertkit.recipes.prepare import plan


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)  # two files each


@pytest.fixture
def tokenizer(tmp_path):
    letters_tokenizer().save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


@pytest.fixture
def corpus(tmp_path):
    """Six files of twenty documents of three sentences."""
    write_letters(tmp_path / "corpus", "abcdef", 20)
    return tmp_path / "corpus"
