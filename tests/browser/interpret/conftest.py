"""The small model of most pages."""

import pytest
from tests.browser.interpret.scenes import load_small


@pytest.fixture(scope="session")
def inspected(tmp_path_factory):
    """Two layers of two heads that read up to 512 tokens."""
    return load_small(tmp_path_factory.mktemp("inspected"))
