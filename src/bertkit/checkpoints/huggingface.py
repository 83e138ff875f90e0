"""Hugging Face folders: `config.json` and `model.safetensors`, and the table of their names.

The table says for each of our tensors which foreign ones it is made of; several are joined along
their first dimension. Reading it from right to left writes the same folder back.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, DamagedFileError, MissingFileError
from bertkit.base.files import make_folder, read_json, write_file, write_json
from bertkit.checkpoints.run_folder import CONFIG_FILE, find_model_folder

WEIGHTS_FILE = "model.safetensors"
HEADER_LIMIT_BYTES = 8 << 20

EMBEDDINGS = "encoder.embeddings"
LAYER = "encoder.layers.{layer}"
THEIR_LAYER = "bert.encoder.layer.{layer}"

# Ours: theirs. `{layer}` counts from 0.
BERT_NAMES: dict[str, tuple[str, ...]] = {
    f"{EMBEDDINGS}.word.weight": ("bert.embeddings.word_embeddings.weight",),
    f"{EMBEDDINGS}.position.weight": ("bert.embeddings.position_embeddings.weight",),
    f"{EMBEDDINGS}.token_type.weight": ("bert.embeddings.token_type_embeddings.weight",),
    f"{EMBEDDINGS}.norm.weight": ("bert.embeddings.LayerNorm.weight",),
    f"{EMBEDDINGS}.norm.bias": ("bert.embeddings.LayerNorm.bias",),
    f"{LAYER}.attention.query_key_value.weight": (
        f"{THEIR_LAYER}.attention.self.query.weight",
        f"{THEIR_LAYER}.attention.self.key.weight",
        f"{THEIR_LAYER}.attention.self.value.weight",
    ),
    f"{LAYER}.attention.query_key_value.bias": (
        f"{THEIR_LAYER}.attention.self.query.bias",
        f"{THEIR_LAYER}.attention.self.key.bias",
        f"{THEIR_LAYER}.attention.self.value.bias",
    ),
    f"{LAYER}.attention.output.weight": (f"{THEIR_LAYER}.attention.output.dense.weight",),
    f"{LAYER}.attention.output.bias": (f"{THEIR_LAYER}.attention.output.dense.bias",),
    f"{LAYER}.attention_norm.weight": (f"{THEIR_LAYER}.attention.output.LayerNorm.weight",),
    f"{LAYER}.attention_norm.bias": (f"{THEIR_LAYER}.attention.output.LayerNorm.bias",),
    f"{LAYER}.feed_forward.up.weight": (f"{THEIR_LAYER}.intermediate.dense.weight",),
    f"{LAYER}.feed_forward.up.bias": (f"{THEIR_LAYER}.intermediate.dense.bias",),
    f"{LAYER}.feed_forward.down.weight": (f"{THEIR_LAYER}.output.dense.weight",),
    f"{LAYER}.feed_forward.down.bias": (f"{THEIR_LAYER}.output.dense.bias",),
    f"{LAYER}.feed_forward_norm.weight": (f"{THEIR_LAYER}.output.LayerNorm.weight",),
    f"{LAYER}.feed_forward_norm.bias": (f"{THEIR_LAYER}.output.LayerNorm.bias",),
    "pooler.dense.weight": ("bert.pooler.dense.weight",),
    "pooler.dense.bias": ("bert.pooler.dense.bias",),
    "masked_lm.dense.weight": ("cls.predictions.transform.dense.weight",),
    "masked_lm.dense.bias": ("cls.predictions.transform.dense.bias",),
    "masked_lm.norm.weight": ("cls.predictions.transform.LayerNorm.weight",),
    "masked_lm.norm.bias": ("cls.predictions.transform.LayerNorm.bias",),
    "masked_lm.bias": ("cls.predictions.bias",),
    "next_sentence.weight": ("cls.seq_relationship.weight",),
    "next_sentence.bias": ("cls.seq_relationship.bias",),
}

# Copies that some folders hold of a tensor that they also hold under its own name.
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# What isn't a weight, and the heads that a bare encoder leaves out.
DROPPED = ("bert.embeddings.position_ids",)
HEADS_PREFIX = "cls."
# How folders of the first years, `bert-base-uncased` among them, name their norms.
OLD_NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

# Where a foreign name begins: the part of the model, as people count it.
PARTS = {
    "bert.embeddings": "encoder.embeddings",
    "bert.encoder": "encoder.layers",
    "bert.pooler": "pooler",
    "cls.predictions": "masked_lm",
    "cls.seq_relationship": "next_sentence",
}

Named = TypeVar("Named")


def read_folder(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read config and tensors under their foreign names, the `bert.` prefix always present.

    Args:
        path: a Hugging Face folder, or a run of `bertkit pretrain` (its newest whole checkpoint).

    Raises:
        MissingFileError: no model is there.
        CheckpointError: two tensors have one name.
        DamagedFileError: a file was cut short, altered, or isn't of its format.
    """
    folder = find_model_folder(path, reading=(CONFIG_FILE, WEIGHTS_FILE))
    return read_config(folder), rename_tensors(read_safetensors(folder / WEIGHTS_FILE))


def read_config(folder: Path) -> dict[str, Any]:
    """Read a folder's `config.json`.

    Raises:
        MissingFileError: there is none.
        DamagedFileError: it isn't one JSON object.
    """
    config = read_json(folder / CONFIG_FILE, limit_bytes=1 << 20)
    if not isinstance(config, dict):
        raise DamagedFileError(f"{folder / CONFIG_FILE} must hold one JSON object")
    return config


def rename_tensors(tensors: Mapping[str, Named]) -> dict[str, Named]:
    """Put foreign names as the table has them: the `bert.` prefix present, norms by today's names.

    Raises:
        CheckpointError: two tensors come to have one name.
    """
    has_prefix = any(name.startswith("bert.") for name in tensors)
    renamed: dict[str, Named] = {}
    for name, tensor in tensors.items():
        for old, new in OLD_NORMS.items():
            name = name.replace(old, new)
        if not has_prefix and not name.startswith(HEADS_PREFIX):
            name = f"bert.{name}"
        if name in renamed:
            raise CheckpointError(f"two tensors mean {name}; the file must have one of them")
        renamed[name] = tensor
    return renamed


def count_parameters(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Number of parameters by part; tied copies aren't counted.

    Args:
        shapes: foreign names, `bert.` prefix present, and shapes.
    """
    parts: Counter[str] = Counter()
    for name, shape in shapes.items():
        if name not in DROPPED and COPIES.get(name) not in shapes:
            beginning = ".".join(name.split(".")[:2])
            parts[PARTS.get(beginning, name.split(".")[0])] += math.prod(shape)
    return dict(parts)


def write_folder(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor]
) -> dict[str, FileRecord]:
    """Write config and tensors under their foreign names, and return the record of each file.

    Raises:
        StorageError: the disk refused.
    """
    make_folder(folder)
    if not any(name.startswith(HEADS_PREFIX) for name in tensors):
        tensors = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
    return {
        CONFIG_FILE: write_json(folder / CONFIG_FILE, config),
        WEIGHTS_FILE: write_safetensors(folder / WEIGHTS_FILE, tensors),
    }


def import_tensors(
    foreign: dict[str, Tensor], expected: dict[str, tuple[int, ...]], source: Path
) -> dict[str, Tensor]:
    """Turn foreign tensors into ours, each exactly once, as float32.

    Args:
        foreign: tensors under foreign names, `bert.` prefix present.
        expected: our names and shapes.
        source: where they came from, for messages.

    Raises:
        CheckpointError: one message lists what is missing, left over, of the wrong shape, or not
            made of finite floating-point numbers.
    """
    left = dict(foreign)
    problems: list[str] = []
    tensors = {}
    for name, shape in expected.items():
        their_names = _their_names(name)
        parts = {their: left.pop(their, None) for their in their_names}
        part_shape = (shape[0] // len(parts), *shape[1:])
        found = [_find_problem(their, part, part_shape) for their, part in parts.items()]
        problems += filter(None, found)
        if not any(found):
            tensors[name] = torch.cat([part.float() for part in parts.values() if part is not None])
    problems += _leftovers(left, foreign, has_heads="masked_lm.bias" in expected)
    if problems:
        shown = "; ".join(problems[:8]) + (f"; and {len(problems) - 8} more" * (len(problems) > 8))
        raise CheckpointError(f"{source} doesn't hold the weights of its config: {shown}")
    return tensors


def export_tensors(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors under their foreign names, split where several were joined."""
    foreign = {}
    for name, tensor in tensors.items():
        their_names = _their_names(name)
        parts = tensor.chunk(len(their_names))
        foreign.update(
            {their: part.contiguous() for their, part in zip(their_names, parts, strict=True)}
        )
    return foreign


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file that may come from anyone.

    Raises:
        MissingFileError: there is no such file.
        DamagedFileError: its header is too large or the file isn't whole.
    """
    with _open_safetensors(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of all tensors from the header alone; errors as in `read_safetensors`."""
    with _open_safetensors(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _open_safetensors(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise MissingFileError(f"{path} doesn't exist; a model folder has one")
    with path.open("rb") as stream:
        start = stream.read(8)
    header_bytes = int.from_bytes(start, "little")
    if len(start) < 8 or header_bytes > HEADER_LIMIT_BYTES:
        raise DamagedFileError(
            f"{path} isn't a safetensors file: its header would have {header_bytes:,} bytes,"
            f" and none needs more than {HEADER_LIMIT_BYTES:,}"
        )
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise DamagedFileError(f"{path} isn't a whole safetensors file: {error}") from None


def write_safetensors(path: Path, tensors: dict[str, Tensor]) -> FileRecord:
    """Write tensors durably.

    Raises:
        StorageError: the disk refused.
    """
    return write_file(path, save(tensors, metadata={"format": "pt"}))


def _their_names(name: str) -> tuple[str, ...]:
    """Look one of our names up in the table."""
    if not name.startswith("encoder.layers."):
        return BERT_NAMES[name]
    layer, _, rest = name.removeprefix("encoder.layers.").partition(".")
    return tuple(their.format(layer=layer) for their in BERT_NAMES[f"{LAYER}.{rest}"])


def _find_problem(name: str, tensor: Tensor | None, shape: tuple[int, ...]) -> str | None:
    """Say why a foreign tensor can't be taken; None where it can."""
    if tensor is None:
        return f"missing {name}"
    if tensor.shape != shape:
        return f"{name} is {list(tensor.shape)} and must be {list(shape)}"
    if not tensor.is_floating_point():
        return f"{name} holds {tensor.dtype} and must hold floating-point numbers"
    if not torch.isfinite(tensor.float()).all():
        return f"{name} has NaN or infinity"
    return None


def _leftovers(
    left: dict[str, Tensor], foreign: dict[str, Tensor], *, has_heads: bool
) -> list[str]:
    """Name each foreign tensor that was not used and may not be dropped."""
    problems = []
    for name, tensor in left.items():
        original = foreign.get(COPIES.get(name, ""))
        if original is not None and not torch.equal(tensor, original):
            problems.append(f"{name} must equal {COPIES[name]}, and doesn't")
        elif (
            original is None
            and name not in DROPPED
            and (has_heads or not name.startswith(HEADS_PREFIX))
        ):
            problems.append(f"unknown {name}")
    return problems
