"""A small model and its tables, made once."""

import pytest
from tests.unit.recipes.finetune.small import save_model, write_tables

from bertkit.recipes.finetune.run import Sources


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a model and tables."""
    folder = tmp_path_factory.mktemp("made")
    save_model(folder / "model")
    write_tables(folder)
    return folder


@pytest.fixture
def sources(made):
    """What a classifier is made of."""
    return Sources("classify", str(made / "model"), str(made / "train.csv"), str(made / "dev.csv"))
