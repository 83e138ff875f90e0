"""A small model folder without any defect, and its parts, from which cases are made."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from bertkit.checkpoints.elements import ElementType
from bertkit.checkpoints.torch_tensors import export_tensors
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.tokenization.settings import UNCASED
from bertkit.tokenization.word_piece import config_content, engine_json

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertForPreTraining"],
    "vocab_size": 32,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "##a")

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
WORDS = "bert.embeddings.word_embeddings.weight"


@cache
def tensors() -> Mapping[str, Tensor]:
    """Weights for `CONFIG` under foreign names, the same ones each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return export_tensors(
            BertForPreTraining(BertConfig(**CONFIG)).state_dict(), BertConfig.names.table()
        )


def header_and_data(weights: Mapping[str, Tensor]) -> tuple[dict[str, Any], bytes]:
    """The two parts of a safetensors file."""
    header: dict[str, Any] = {}
    data = b""
    for name, tensor in weights.items():
        piece = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": ElementType(str(tensor.dtype).removeprefix("torch.")).name,
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(piece)],
        }
        data += piece
    return header, data


def join(header: object, data: bytes) -> bytes:
    """A safetensors file of any header, sensible or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def weights_file(weights: Mapping[str, Tensor] | None = None) -> bytes:
    """A whole safetensors file."""
    return join(*header_and_data(tensors() if weights is None else weights))


def to_json(content: object) -> bytes:
    """Bytes of a JSON file."""
    return json.dumps(content).encode()


def vocabulary_file(entries: tuple[str, ...] = VOCABULARY) -> bytes:
    """`vocab.txt`."""
    return "".join(f"{entry}\n" for entry in entries).encode()


@cache
def tokenizer_json() -> dict[str, Any]:
    """`tokenizer.json` for the vocabulary, parsed."""
    content: dict[str, Any] = json.loads(engine_json(VOCABULARY, UNCASED))
    return content


@cache
def whole_files() -> Mapping[str, bytes]:
    """All files of the folder."""
    return {
        "config.json": to_json(CONFIG),
        WEIGHTS: weights_file(),
        "vocab.txt": vocabulary_file(),
        "tokenizer.json": to_json(tokenizer_json()),
        "tokenizer_config.json": to_json(config_content(UNCASED)),
    }


def folder_with(changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """The files of the folder with some replaced or added, and those of None left out."""
    files = {**whole_files(), **changes}
    return {name: content for name, content in files.items() if content is not None}
