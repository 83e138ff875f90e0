"""Random bytes as `model.onnx`, from files of ours in float32 and in int8."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tests.unit.inference.small import arrays_of

from bertkit.checkpoints.names import BERT
from bertkit.checkpoints.onnx_file import open_onnx
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import EXPORTED
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel

NUM_INPUTS = 8_000


@cache
def seeds() -> list[bytes]:
    """A small model in both precisions."""
    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = BertConfig(**sizes, vocab_size=8, intermediate_size=4, max_position_embeddings=8)
    torch.manual_seed(0)
    model, contents = BertModel(config), []
    for precision in ("fp32", "int8"):
        with TemporaryDirectory() as folder:
            kind = EXPORTED["BertModel"]
            write_onnx(Path(folder), config, arrays_of(model), kind, None, precision)
            contents.append(next(Path(folder).glob("onnx/*.onnx")).read_bytes())
    return contents


def read(data: bytes, folder: Path) -> None:
    """Open a file, and read all tensors."""
    path = folder / "model.onnx"
    path.write_bytes(data)
    for tensor in BERT.complete(open_onnx(path)).values():
        tensor.read()
