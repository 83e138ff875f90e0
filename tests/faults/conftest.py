"""Shards, and a run that nothing disturbed, made once for all tests of faults."""

import pytest
from tests.e2e.small import write_corpus
from tests.faults.children import SEED, Workshop, send

from bertkit.cli.main import main


def pytest_report_collectionfinish() -> str:
    """Show in every run what would repeat it."""
    return f"faults: BERTKIT_FAULT_SEED={SEED}"


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with small shards and a model's sizes."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "books").mkdir()  # what is held out follows from this name too
    write_corpus(folder / "books" / "corpus.txt", 60)
    tokenizer = f"train-tokenizer {folder}/books --vocab-size 200 --output {folder}/tokenizer"
    assert main(tokenizer.split()) == 0
    shards = f"prepare {folder}/books --tokenizer {folder}/tokenizer --output {folder}/shards"
    assert main(f"{shards} --held-out 0.1 --workers 1".split()) == 0
    (folder / "nano.json").write_text(
        '{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,'
        ' "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}'
    )
    return Workshop(folder)


@pytest.fixture(scope="session")
def undisturbed(workshop, tmp_path_factory):
    """A run from its beginning to its end, and all places that it passed."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    ending = send(workshop.words(run), run)
    assert ending.code == 0, ending.messages
    return run, ending
