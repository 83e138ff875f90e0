"""A server of small models of all kinds."""

import pytest
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.hub import find_bundled


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of small models, by name; the encoder is the one that comes with bertkit."""
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def client(models):
    """A server of all of them, and of the encoder that comes with bertkit."""
    with running({"encoder": str(find_bundled("vectors")), **models}) as client:
        yield client
