"""Hugging Face folders: `config.json` and weights in one or several files.

If there are several forms of the weights, the first one in `WEIGHTS` is read. A shard index must
match its files exactly: the same tensors, each in the file that the index names.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import (
    CheckpointError,
    DamagedFileError,
    MissingFileError,
    SettingsError,
    UnsafeFileError,
)
from bertkit.base.files import make_folder
from bertkit.base.json_files import read_json, write_json
from bertkit.base.members import find_member, has_member
from bertkit.checkpoints.checkpoint import MAX_TENSORS, Checkpoint, LazyTensor
from bertkit.checkpoints.families import find_family, is_bert
from bertkit.checkpoints.file_names import (
    ADAPTED_FILE,
    CONFIG_FILE,
    CONFIG_LIMIT_BYTES,
    DATA_SUFFIX,
    INDEX_LIMIT_BYTES,
    INDEX_SUFFIX,
    MODULES_LIMIT_BYTES,
    ONNX_FILE,
    PYTORCH_FILE,
    QUANTIZED_FILE,
    SAFETENSORS_FILE,
)
from bertkit.checkpoints.names import remove_wrappers, show
from bertkit.checkpoints.onnx_file import open_onnx
from bertkit.checkpoints.safetensors_file import open_safetensors, write_safetensors
from bertkit.checkpoints.transfer import unmark_own_head

MAX_SHARDS = 100  # BERT-Large needs one
SHARD_BYTES = 5_000_000_000  # the size at which transformers splits


def open_pytorch(path: Path) -> dict[str, LazyTensor]:
    """Open a file as in `pytorch_file`, which is imported when it is needed: it takes a while."""
    from bertkit.checkpoints import pytorch_file

    return pytorch_file.open_pytorch(path)


# The files of weights, of which the first is taken, and what opens them.
OPENERS: dict[str, Callable[[Path], dict[str, LazyTensor]]] = {
    SAFETENSORS_FILE: open_safetensors,
    PYTORCH_FILE: open_pytorch,
    ONNX_FILE: open_onnx,
    QUANTIZED_FILE: open_onnx,
}
WEIGHTS_FILE = SAFETENSORS_FILE
MODEL_CONFIGS = (CONFIG_FILE, ADAPTED_FILE)


def open_huggingface(folder: Path) -> Checkpoint:
    """Read the config and the headers of the weights."""
    config = read_config(folder)
    tensors, files = open_weights(folder)
    if not is_bert(config):
        tensors = dict(remove_wrappers(tensors))
    elif not is_own_network(config):
        tensors = unmark_own_head(find_family(config).names.complete(tensors))
    return Checkpoint(
        format="huggingface",
        folder=folder,
        config=config,
        tensors=tensors,
        files=(folder / CONFIG_FILE, *files),
    )


def is_own_network(config: Mapping[str, JsonValue]) -> bool:
    """Whether the model is of a type that only bertkit has, such as those of its studies."""
    return str(config.get("model_type")).startswith("bertkit-")


def read_config(folder: Path, name: str = CONFIG_FILE) -> dict[str, JsonValue]:
    """Read a folder's `config.json`."""
    path = find_member(folder, name)
    if not path.is_file():  # opening a named pipe would block forever
        raise MissingFileError(f"{path} isn't a file; a model folder has one of this name")
    limit = CONFIG_LIMIT_BYTES if name in MODEL_CONFIGS else MODULES_LIMIT_BYTES
    config = read_json(path, limit_bytes=limit)
    if not isinstance(config, dict):
        raise DamagedFileError(f"{path} must hold one JSON object")
    return config


def open_weights(
    folder: Path, owner: str = "a model folder", *, may_be_sharded: bool = True
) -> tuple[dict[str, LazyTensor], list[Path]]:
    """Return all tensors by their names in the files, and the files."""
    for name, open_file in OPENERS.items():
        if has_member(folder, name):
            path = find_member(folder, name)
            has_data = open_file is open_onnx and has_member(folder, name + DATA_SUFFIX)
            data = [find_member(folder, name + DATA_SUFFIX)] if has_data else []
            return open_file(path), [path, *data]
        if may_be_sharded and has_member(folder, name + INDEX_SUFFIX):
            return _open_shards(find_member(folder, name + INDEX_SUFFIX), open_file)
    if has_member(folder, Path(ONNX_FILE).name):
        raise MissingFileError(
            f"{folder / Path(ONNX_FILE).name} is in the wrong place; move it to {ONNX_FILE} (int8:"
            f" {QUANTIZED_FILE}), or export the model again"
        )
    raise MissingFileError(f"{folder} has no {' or '.join(OPENERS)}; {owner} has one of them")


def _open_shards(
    path: Path, open_file: Callable[[Path], dict[str, LazyTensor]]
) -> tuple[dict[str, LazyTensor], list[Path]]:
    index = read_json(path, limit_bytes=INDEX_LIMIT_BYTES)
    listed = index.get("weight_map") if isinstance(index, dict) else None
    entries = listed.items() if isinstance(listed, dict) else ()
    weight_map = {tensor: name for tensor, name in entries if isinstance(name, str)}
    if weight_map != listed:
        raise DamagedFileError(f"{path} must have a weight_map from tensors to files")
    names = sorted(set(weight_map.values()))
    if len(names) > MAX_SHARDS or len(weight_map) > MAX_TENSORS:
        raise UnsafeFileError(
            f"{path} names {len(weight_map):,} tensors in {len(names):,} files; at most"
            f" {MAX_TENSORS:,} in {MAX_SHARDS:,} may be"
        )
    files = [find_member(path.parent, name) for name in names]
    if len({file.resolve() for file in files}) < len(files):
        raise UnsafeFileError(f"{path} names one file by several names, through links")
    tensors: dict[str, LazyTensor] = {}
    file_of_tensor: dict[str, str] = {}
    for name, file in zip(names, files, strict=True):
        shard = open_file(file)
        if again := sorted(shard.keys() & tensors.keys()):
            raise CheckpointError(
                f"{file} and {file_of_tensor[again[0]]} both hold {show(again[0])}"
            )
        tensors |= shard
        file_of_tensor |= dict.fromkeys(shard, name)
        if len(file_of_tensor) > len(weight_map):  # each file may hold far more than the index says
            break
    if file_of_tensor != weight_map:
        wrong = sorted(
            tensor
            for tensor in file_of_tensor.keys() | weight_map.keys()
            if file_of_tensor.get(tensor) != weight_map.get(tensor)
        )
        raise DamagedFileError(
            f"{path} and its files disagree on where {len(wrong)} tensors are, {show(wrong[0])}"
            " among them; fetch all of them again"
        )
    return tensors, [path, *files]


def write_huggingface(
    folder: Path,
    config: Mapping[str, JsonValue],
    tensors: Mapping[str, LazyTensor],
    *,
    shard_bytes: int = SHARD_BYTES,
) -> dict[str, FileRecord]:
    """Write config and tensors under current names, sharded if they are large.

    A bare encoder is written without the prefix of its names, as transformers does.

    Returns:
        Size and checksums of each file, by name.
    """
    make_folder(folder)
    prefix = find_family(config).names.prefix
    if all(name.startswith(prefix) for name in tensors):
        tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    shards = _cut_shards(tensors, shard_bytes)
    if len(shards) > MAX_SHARDS:
        raise SettingsError(
            f"max_shard_size would make {len(shards)} files, and at most {MAX_SHARDS} are read;"
            " choose a larger one"
        )
    records = {CONFIG_FILE: write_json(folder / CONFIG_FILE, config)}
    if len(shards) == 1:
        return records | {WEIGHTS_FILE: write_safetensors(folder / WEIGHTS_FILE, tensors)}
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        records[file] = write_safetensors(folder / file, {name: tensors[name] for name in names})
        weight_map |= dict.fromkeys(names, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    index_file = WEIGHTS_FILE + INDEX_SUFFIX
    return records | {index_file: write_json(folder / index_file, index)}


def _cut_shards(tensors: Mapping[str, LazyTensor], shard_bytes: int) -> list[list[str]]:
    """Group tensor names into shards of at most `shard_bytes`; a larger tensor is alone."""
    shards: list[list[str]] = [[]]
    size = 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += tensor.nbytes
    return shards
