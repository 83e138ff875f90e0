"""Selection of a model's files: config and tokenizer files, and one form of the weights.

The same rules apply to the Hub's file list and to a cached folder. A sentence-transformers folder
has modules, each a folder with a config and possibly weights.
"""

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.base.files import read_json
from bertkit.base.members import check_name, find_member
from bertkit.checkpoints.file_names import (
    CONFIG_FILE,
    INDEX_LIMIT_BYTES,
    INDEX_SUFFIX,
    MAX_MODULES,
    MODULES_FILE,
    MODULES_LIMIT_BYTES,
    ONNX_DATA_FILE,
    ONNX_FILE,
    PYTORCH_FILE,
    REWRITER_FILE,
    SAFETENSORS_FILE,
    TASK_FILE,
)

DESCRIPTIONS = (
    CONFIG_FILE,
    *("vocab.txt", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json"),
    *(TASK_FILE, REWRITER_FILE),
    *(MODULES_FILE, "sentence_bert_config.json", "config_sentence_transformers.json"),
)
# The first of these that exists is fetched; other forms are not.
WEIGHTS = (
    SAFETENSORS_FILE,
    SAFETENSORS_FILE + INDEX_SUFFIX,
    PYTORCH_FILE,
    PYTORCH_FILE + INDEX_SUFFIX,
    ONNX_FILE,
)


def choose_descriptions(names: Collection[str], prefix: str, *, for_weights: bool) -> list[str]:
    """Return the small files that a folder has: config, tokenizer, index of the weights.

    Args:
        names: all file names of the model.
        prefix: of the folder's files, "" for the model's own folder.
        for_weights: whether the weights will be fetched too.
    """
    chosen = [prefix + name for name in DESCRIPTIONS if prefix + name in names]
    weights = _choose_form(names, prefix)
    if for_weights and weights and weights.endswith(INDEX_SUFFIX):
        chosen.append(weights)
    return chosen


def choose_weights(names: Collection[str], prefix: str, snapshot: Path) -> list[str]:
    """Return a folder's weight files; empty if it has none.

    Args:
        names: all file names of the model.
        prefix: of the folder's files.
        snapshot: the folder with the files of `choose_descriptions`, which is read for the index.
    """
    weights = _choose_form(names, prefix)
    if weights is None:
        return []
    if not weights.endswith(INDEX_SUFFIX):
        data = prefix + ONNX_DATA_FILE
        return [weights, data] if weights.endswith(ONNX_FILE) and data in names else [weights]
    path = find_member(snapshot, weights)
    index = read_json(path, limit_bytes=INDEX_LIMIT_BYTES)
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise DamagedFileError(f"{path} must say under weight_map which file has which tensor")
    shards = sorted(set(files.values()))
    for shard in shards:
        check_name(path, shard)
    return [prefix + shard for shard in shards]


def list_modules(names: Collection[str], snapshot: Path) -> list[str]:
    """Return the folder prefixes of sentence-transformers modules; empty for other models."""
    if MODULES_FILE not in names:
        return []
    path = find_member(snapshot, MODULES_FILE)
    modules = read_json(path, limit_bytes=MODULES_LIMIT_BYTES)
    if isinstance(modules, list) and len(modules) > MAX_MODULES:
        raise UnsafeFileError(
            f"{path} lists {len(modules):,} modules; at most {MAX_MODULES} may be"
        )
    prefixes = []
    for module in modules if isinstance(modules, list) else [None]:
        folder = module.get("path") if isinstance(module, dict) else None
        if not isinstance(folder, str):
            raise DamagedFileError(f"{path} must be a list of modules, each with its path")
        if PurePosixPath(folder).parts:  # an empty one is the model's own folder
            check_name(path, folder)
            prefixes.append(f"{PurePosixPath(folder)}/")
    return list(dict.fromkeys(prefixes))


def _choose_form(names: Collection[str], prefix: str) -> str | None:
    return next((prefix + name for name in WEIGHTS if prefix + name in names), None)
