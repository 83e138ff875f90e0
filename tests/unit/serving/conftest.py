"""A server of small models of all kinds."""

import pytest
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.small_rewriter import save_rewriter
from tests.unit.inference.small_task import save_answerer, save_classifier, save_model, save_tagger
from tests.unit.serving.running import running

from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of small models, by name; the encoder is the one that comes with bertkit."""
    folder = tmp_path_factory.mktemp("models")
    for name, save in {"words": save_small, "writer": save_causal}.items():
        save(folder / name)
    save_rewriter(folder / "translator")
    for name, save_task in {
        "sentiment": save_classifier,
        "entities": save_tagger,
        "reader": save_answerer,
    }.items():
        save_task(folder / name)
    save_model(folder / "reranker", Regress(RegressSettings(max_length=16)))
    names = "words", "writer", "translator", "sentiment", "entities", "reader", "reranker"
    return {name: str(folder / name) for name in names}


@pytest.fixture(scope="session")
def client(models):
    """A server of all of them, and of the encoder that comes with bertkit."""
    from bertkit.checkpoints.hub import find_bundled

    with running({"encoder": str(find_bundled("vectors")), **models}) as client:
        yield client
