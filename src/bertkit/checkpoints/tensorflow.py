"""Google's TensorFlow checkpoints: `bert_config.json`, `vocab.txt` and `bert_model.ckpt.*`.

The tables map each variable to its name in Hugging Face's folders. A `kernel` is transposed: it is
[in, out] in TensorFlow, and [out, in] here.

Source: https://github.com/google-research/bert: modeling.py, run_pretraining.py, run_classifier.py,
run_squad.py, optimization.py.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from bertkit.base.errors import CheckpointError, MissingFileError
from bertkit.base.members import find_member, has_member
from bertkit.checkpoints.checkpoint import Checkpoint, LazyTensor
from bertkit.checkpoints.huggingface import read_config
from bertkit.checkpoints.leveldb_table import is_table
from bertkit.checkpoints.names import show
from bertkit.checkpoints.tensor_bundle import INDEX_SUFFIX, open_bundle

CONFIG_FILE = "bert_config.json"

LAYER_PATTERN = re.compile(r"bert/encoder/layer_(0|[1-9][0-9]{0,3})/")

# TensorFlow's name: Hugging Face's name.
TENSORFLOW_NAMES = {
    "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
    "bert/embeddings/LayerNorm/gamma": "bert.embeddings.LayerNorm.weight",
    "bert/embeddings/LayerNorm/beta": "bert.embeddings.LayerNorm.bias",
    "bert/pooler/dense/kernel": "bert.pooler.dense.weight",
    "bert/pooler/dense/bias": "bert.pooler.dense.bias",
    "cls/predictions/transform/dense/kernel": "cls.predictions.transform.dense.weight",
    "cls/predictions/transform/dense/bias": "cls.predictions.transform.dense.bias",
    "cls/predictions/transform/LayerNorm/gamma": "cls.predictions.transform.LayerNorm.weight",
    "cls/predictions/transform/LayerNorm/beta": "cls.predictions.transform.LayerNorm.bias",
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
}

LAYER_NAMES = {  # of variables within `bert/encoder/layer_0/` and so on
    "attention/self/query/kernel": "attention.self.query.weight",
    "attention/self/query/bias": "attention.self.query.bias",
    "attention/self/key/kernel": "attention.self.key.weight",
    "attention/self/key/bias": "attention.self.key.bias",
    "attention/self/value/kernel": "attention.self.value.weight",
    "attention/self/value/bias": "attention.self.value.bias",
    "attention/output/dense/kernel": "attention.output.dense.weight",
    "attention/output/dense/bias": "attention.output.dense.bias",
    "attention/output/LayerNorm/gamma": "attention.output.LayerNorm.weight",
    "attention/output/LayerNorm/beta": "attention.output.LayerNorm.bias",
    "intermediate/dense/kernel": "intermediate.dense.weight",
    "intermediate/dense/bias": "intermediate.dense.bias",
    "output/dense/kernel": "output.dense.weight",
    "output/dense/bias": "output.dense.bias",
    "output/LayerNorm/gamma": "output.LayerNorm.weight",
    "output/LayerNorm/beta": "output.LayerNorm.bias",
}

# Not weights: the step counter, and the state of google-research's and of TensorFlow's Adam.
DROPPED = ("global_step", "beta1_power", "beta2_power")
DROPPED_ENDS = ("/adam_m", "/adam_v", "/Adam", "/Adam_1")


def is_tensorflow(path: Path) -> bool:
    """Whether a folder, or a file prefix, looks like a TensorFlow checkpoint."""
    if path.is_dir():
        return has_member(path, CONFIG_FILE) or bool(_list_prefixes(path))
    return has_member(path.parent, path.name + INDEX_SUFFIX) or _is_old(path)


def open_tensorflow(path: Path) -> Checkpoint:
    """Read the config and the index; tensors are read and their checksums verified on use.

    The path is a folder, or the common prefix of the checkpoint's files: `…/bert_model.ckpt`.
    """
    folder, prefix = (path, _find_prefix(path)) if path.is_dir() else (path.parent, path.name)
    if _is_old(folder / prefix):
        raise CheckpointError(
            f"{folder / prefix} is in the first version of TensorFlow's format, one file; save it"
            " again with Saver(write_version=SaverDef.V2)"
        )
    config = {"model_type": "bert"} | read_config(folder, CONFIG_FILE)
    variables, files = open_bundle(folder, prefix)
    tensors = rename_variables(variables)
    classifier = tensors.get("classifier.weight")
    if classifier and classifier.shape:  # Google's config doesn't say how many labels there are
        config = {"num_labels": classifier.shape[0]} | config
    return Checkpoint(
        format="tensorflow",
        folder=folder,
        config=config,
        tensors=tensors,
        files=(folder / CONFIG_FILE, *files),
    )


def rename_variables(variables: Mapping[str, LazyTensor]) -> dict[str, LazyTensor]:
    """Rename variables to current names; unknown ones keep their own."""
    tensors: dict[str, LazyTensor] = {}
    for name, tensor in variables.items():
        if name in DROPPED or name.endswith(DROPPED_ENDS):
            continue
        new_name = find_name(name) or name
        if new_name in tensors:
            raise CheckpointError(f"two variables mean {new_name}; there must be one of them")
        is_matrix = name.endswith("/kernel") and len(tensor.shape) == 2  # others are refused later
        tensors[new_name] = tensor.transposed() if is_matrix else tensor
    return tensors


def find_name(name: str) -> str | None:
    """Return the tables' name for a TensorFlow variable."""
    layer = LAYER_PATTERN.match(name)
    if layer is None:
        return TENSORFLOW_NAMES.get(name)
    new_name = LAYER_NAMES.get(name[layer.end() :])
    return new_name and f"bert.encoder.layer.{layer[1]}.{new_name}"


def _find_prefix(folder: Path) -> str:
    """Return the file prefix of a folder's only checkpoint."""
    prefixes = _list_prefixes(folder)
    if not prefixes:
        raise MissingFileError(
            f"{folder} has {CONFIG_FILE} and no checkpoint; expected bert_model.ckpt.index and"
            " bert_model.ckpt.data-00000-of-00001 beside it"
        )
    if len(prefixes) > 1:
        shown = ", ".join(map(show, prefixes[:8]))
        raise CheckpointError(f"{folder} holds {len(prefixes)} checkpoints: {shown}; name one")
    return prefixes[0]


def _list_prefixes(folder: Path) -> list[str]:
    """Return the file prefixes of the checkpoints in a folder."""
    new = [path.name.removesuffix(INDEX_SUFFIX) for path in folder.glob(f"*{INDEX_SUFFIX}")]
    old = [path.name for path in folder.glob("*.ckpt*") if _is_old(path)]
    return sorted(new + old)


def _is_old(path: Path) -> bool:
    """Whether it is a checkpoint in the first format: a single table file that has the values."""
    is_file = path.suffix != INDEX_SUFFIX and path.is_file()
    return is_file and is_table(find_member(path.parent, path.name))
