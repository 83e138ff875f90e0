"""Random bytes as `modules.json`, or as a file of one of its modules; the first says as which."""

from contextlib import suppress
from pathlib import Path

from tests.hostile.sentence_files import DENSE, ENCODER, MODULES, POOLING
from tests.hostile.whole import to_json, whole_files

from bertkit.base.errors import BertkitError
from bertkit.checkpoints.sentence_transformers import read_sentence_model

FILES = {
    "modules.json": MODULES,
    "1_Pooling/config.json": POOLING,
    "2_Dense/config.json": DENSE,
    "sentence_bert_config.json": ENCODER,
}


def seeds() -> list[bytes]:
    """Each of the files as it should be."""
    return [bytes([number]) + to_json(content) for number, content in enumerate(FILES.values())]


def run(data: bytes, folder: Path) -> None:
    """Read the modules with one file replaced."""
    name = list(FILES)[data[0] % len(FILES)] if data else "modules.json"
    own = {file: to_json(content) for file, content in FILES.items()}
    for file, content in {**whole_files(), **own, name: data[1:]}.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(content)
    with suppress(BertkitError):
        read_sentence_model(folder)
