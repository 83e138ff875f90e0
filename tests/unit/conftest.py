"""Models that many tests only read, made once."""

import pytest
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    """A BERT for pre-training, `small`."""
    folder = tmp_path_factory.mktemp("models") / "small"
    save_small(folder)
    return folder


@pytest.fixture(scope="session")
def causal_folder(tmp_path_factory):
    """A left-to-right model, `small`."""
    folder = tmp_path_factory.mktemp("causal") / "small"
    save_causal(folder)
    return folder
