"""Random bytes as a file of a sentence-transformers folder; the first says as which."""

from pathlib import Path

from tests.hostile.sentence_files import (
    DENSE_FILE,
    ENCODER_FILE,
    MODULES_FILE,
    POOLING_FILE,
    SETTINGS_FILE,
    sentence_folder,
)

from bertkit.models.open_model import OpenModel

NUM_INPUTS = 2_000
FILES = (MODULES_FILE, POOLING_FILE, DENSE_FILE, ENCODER_FILE, SETTINGS_FILE)
WHOLE = sentence_folder()


def seeds() -> list[bytes]:
    """Each of the files as it should be."""
    return [bytes([number]) + WHOLE[name] for number, name in enumerate(FILES)]


def read(data: bytes, folder: Path) -> None:
    """Read the modules with one file replaced."""
    name = FILES[data[0] % len(FILES)] if data else MODULES_FILE
    for file, content in {**WHOLE, name: data[1:]}.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(content)
    _ = OpenModel.open(folder).sentences
