"""The page of a server of small models."""

import pytest
from tests.browser.serving.asking import address
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled
from bertkit.retrieval.index import Index

TEXTS = ("A cat sat.", "It rains.", "The dog saw a hat.")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"encoder": str(find_bundled("vectors")), **save_models(folder)}


@pytest.fixture(scope="session")
def client(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "notes.bertkit"
    rows = [{"id": f"n{len(text)}", "text": text, "length": len(text)} for text in TEXTS]
    with Index(path) as index:
        index.add(rows, id="id", text="text")
    with running({"encoder": models["encoder"], "notes": str(path), **models}) as client:
        yield client


@pytest.fixture
def page(open_page, client):
    return open_page(address(client))
