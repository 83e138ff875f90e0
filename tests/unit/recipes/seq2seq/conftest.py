"""Small files, made once; machines aren't measured."""

from pathlib import Path

import pytest
from tests.unit.recipes.seq2seq.small import QUICK, SHORT, write_files

from bertkit.recipes.seq2seq import run as recipe
from bertkit.recipes.seq2seq.run import PairFiles


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> PairFiles:
    """Pairs to learn from, and held-out ones."""
    return write_files(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session", autouse=True)
def _unmeasured() -> object:
    """The machine's peak, which takes a second to measure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertkit.training.job.measure_peak", lambda *_: 1e11)
        yield


@pytest.fixture(scope="session")
def whole(files: PairFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned."""
    output = tmp_path_factory.mktemp("whole") / "model"
    recipe.train_seq2seq(files, output, QUICK)
    return output


@pytest.fixture(scope="session")
def short(files: PairFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a few steps that nothing interrupted."""
    output = tmp_path_factory.mktemp("short") / "model"
    recipe.train_seq2seq(files, output, SHORT)
    return output
