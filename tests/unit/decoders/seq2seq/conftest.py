"""Small files, made once."""

import pytest
from tests.unit.decoders.seq2seq.small import QUICK, write_files

from bertkit.decoders.seq2seq import run as recipe


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Pairs to learn from, and held-out ones."""
    return write_files(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def whole(files, tmp_path_factory):
    """A model that has learned."""
    output = tmp_path_factory.mktemp("whole") / "model"
    recipe.train_seq2seq(files, output, QUICK)
    return output
