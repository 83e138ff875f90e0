"""A server of small models of all kinds."""

import pytest
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled
from bertkit.retrieval.index import Index

TEXTS = ("A cat sat on the mat.", "Rain fell all day.", "The dog chased a ball.")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of small models, by name; the encoder is the one that comes with bertkit."""
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def notes(tmp_path_factory):
    """The file of an index, whose model is the encoder."""
    path = tmp_path_factory.mktemp("index") / "notes.bertkit"
    rows = [{"id": f"n/{n}", "text": text, "page": n} for n, text in enumerate(TEXTS)]
    index = Index(path)
    index.add(rows, id="id", text="text")
    index.close()
    return str(path)


@pytest.fixture(scope="session")
def client(models, notes):
    """A server of all of them, of the encoder that comes with bertkit, and of the index."""
    named = {"encoder": str(find_bundled("vectors")), "notes": notes, **models}
    with running(named) as client:
        yield client
