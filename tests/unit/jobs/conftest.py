"""A small model to be read, and a place for what is made of it."""

import pytest
from tests.unit.inference.small import save_small


@pytest.fixture
def source(tmp_path):
    """The model's folder, which a test may change."""
    save_small(tmp_path / "source")
    return tmp_path / "source"


@pytest.fixture
def output(tmp_path):
    """A folder that isn't there yet."""
    return tmp_path / "output"
