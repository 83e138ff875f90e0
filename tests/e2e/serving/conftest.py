"""A server with a key."""

import openai
import pytest
from tests.e2e.serving.clients import KEY
from tests.unit.serving.running import running
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def server(models, tmp_path_factory):
    """The address of a server with a key."""
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"{KEY}\n")
    named = {"org/encoder": str(find_bundled("vectors")), **models}
    with running(named, key_file=keys) as client:
        yield f"http://127.0.0.1:{client.server.port}"


@pytest.fixture
def openai_client(server):
    with openai.OpenAI(base_url=f"{server}/v1", api_key=KEY, max_retries=0) as client:
        yield client
