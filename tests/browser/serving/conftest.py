"""The page of a server of small models."""

import pytest
from tests.browser.serving.asking import address
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"encoder": str(find_bundled("vectors")), **save_models(folder)}


@pytest.fixture(scope="session")
def client(models, tmp_path_factory):
    corpus = tmp_path_factory.mktemp("corpus") / "texts.txt"
    corpus.write_text("A cat sat.\nIt rains.\nThe dog saw a hat.\n")
    with running(models, corpus=(f"encoder={corpus}",)) as client:
        yield client


@pytest.fixture
def page(open_page, client):
    return open_page(address(client))
