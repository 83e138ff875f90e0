"""Shards, and a run that nothing disturbed, made once for all tests of faults."""

import pytest
from tests.e2e.small import make_workshop, write_corpus
from tests.faults.children import SEED, Workshop, send


def pytest_report_collectionfinish() -> str:
    """Show in every run what would repeat it."""
    return f"faults: BERTKIT_FAULT_SEED={SEED}"


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with small shards and a model's sizes."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "books").mkdir()  # what is held out follows from this name too
    write_corpus(folder / "books" / "corpus.txt", 60)
    make_workshop(folder, "books", vocab_size=200)
    return Workshop(folder)


@pytest.fixture(scope="session")
def undisturbed(workshop, tmp_path_factory):
    """A run from its beginning to its end, and all places that it passed."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    ending = send(workshop.words(run), run)
    assert ending.code == 0, ending.messages
    return run, ending
