"""A server of small models of all kinds."""

import pytest
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of small models, by name; the encoder is the one that comes with bertkit."""
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Texts that the encoder searches."""
    path = tmp_path_factory.mktemp("corpus") / "texts.jsonl"
    texts = ("A cat sat on the mat.", "Rain fell all day.", "The dog chased a ball.")
    path.write_text(
        "".join(f'{{"id": "n{n}", "text": "{text}"}}\n' for n, text in enumerate(texts))
    )
    return str(path)


@pytest.fixture(scope="session")
def client(models, corpus):
    """A server of all of them, and of the encoder that comes with bertkit."""
    named = {"encoder": str(find_bundled("vectors")), **models}
    with running(named, corpus=(f"encoder={corpus}",)) as client:
        yield client
