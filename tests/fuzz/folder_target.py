"""Random bytes as one of the JSON and text files of a model folder; the first says as which."""

from pathlib import Path

from tests.hostile.folder_files import shards, true_places
from tests.hostile.whole import CONFIG, INDEX, VOCABULARY, WEIGHTS, to_json, whole_files

import bertkit

NUM_INPUTS = 1_000
FILES = ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", INDEX)


def seeds() -> list[bytes]:
    """Each of the files as it should be, and a config with labels."""
    whole = {**whole_files(), INDEX: to_json({"metadata": {}, "weight_map": true_places()})}
    labels = {**CONFIG, "id2label": {"0": "a", "1": "b"}, "problem_type": "regression"}
    examples = [bytes([number]) + whole[name] for number, name in enumerate(FILES)]
    return [*examples, b"\0" + to_json(labels), b"\1" + "\n".join(VOCABULARY).encode()]


def read(data: bytes, folder: Path) -> None:
    """Open model and tokenizer with one file replaced."""
    name = FILES[data[0] % len(FILES)] if data else FILES[0]
    files = dict(whole_files())
    if name == INDEX:
        del files[WEIGHTS]
        files |= shards()
    if name == "vocab.txt":
        del files["tokenizer.json"]
    files[name] = data[1:]
    for path in folder.iterdir():
        path.unlink()
    for file, content in files.items():
        (folder / file).write_bytes(content)
    for door in (bertkit.BertModel.from_pretrained, bertkit.Tokenizer.load):
        door(folder)
