"""A small model, which the tests here only read."""

import pytest


@pytest.fixture(scope="session")
def model(small_folder):
    """The folder of a BERT for pre-training."""
    return small_folder
