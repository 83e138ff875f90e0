"""What the commands make of a small corpus, made once for all tests."""

import pytest
from tests.e2e.small import make_workshop, pretrain_words, write_corpus
from tests.unit.inference.small import save_small

from bertkit.cli.main import main


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with a corpus, a tokenizer and shards."""
    folder = tmp_path_factory.mktemp("workshop")
    write_corpus(folder / "corpus.txt", 300)
    make_workshop(folder, "corpus.txt", vocab_size=120)
    return folder


@pytest.fixture(scope="session")
def trained(workshop):
    """A run that has learned a little."""
    output = workshop / "trained"
    assert main(pretrain_words(workshop, output, steps=200)) == 0
    return output


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of a tiny model with random weights."""
    folder = tmp_path_factory.mktemp("models") / "small"
    save_small(folder)
    return str(folder)
