"""What the commands make of a small corpus, made once for all tests."""

import pytest
from tests.e2e.small import pretrain_words, write_corpus
from tests.unit.inference.small import save_small

from bertkit.cli.main import main


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with a corpus, a tokenizer and shards."""
    folder = tmp_path_factory.mktemp("workshop")
    write_corpus(folder / "corpus.txt", 300)
    assert (
        main(
            f"train-tokenizer {folder}/corpus.txt --vocab-size 120"
            f" --output {folder}/tokenizer".split()
        )
        == 0
    )
    assert (
        main(
            f"prepare {folder}/corpus.txt --tokenizer {folder}/tokenizer --output {folder}/shards"
            " --held-out 0.1 --workers 1".split()
        )
        == 0
    )
    (folder / "nano.json").write_text(
        '{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,'
        ' "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}'
    )
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
