"""Random bytes as `model.safetensors`; the first says whether its header's length is put right."""

from pathlib import Path

from tests.hostile.whole import header_and_data, join, tensors, to_json, weights_file

from bertkit.checkpoints.names import BERT
from bertkit.checkpoints.safetensors_file import open_safetensors

NUM_INPUTS = 8_000


def seeds() -> list[bytes]:
    """A whole file, a small one, and headers alone."""
    few = {name: tensors()[name] for name in list(tensors())[:3]}
    header = to_json(header_and_data(few)[0])
    return [b"\0" + weights_file(), b"\0" + weights_file(few), b"\1" + header, b"\1{}"]


def read(data: bytes, folder: Path) -> None:
    """Open a file, and read all tensors."""
    path = folder / "model.safetensors"
    path.unlink(missing_ok=True)
    content = join(data[1:], bytes(512)) if data[:1] == b"\1" else data[1:]
    path.write_bytes(content)
    for tensor in BERT.complete(open_safetensors(path)).values():
        tensor.read()
