"""The weights of a class by our names, read from a checkpoint; and what is written beside them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.checkpoint import Checkpoint, LazyTensor
from bertkit.checkpoints.elements import ElementType
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.names import HEADS, NameTable
from bertkit.checkpoints.transfer import (
    ANSWERS,
    CLASSIFIER,
    LAST_LAYER,
    import_tensors,
    is_own_head,
    mark_own_head,
)
from bertkit.models.bert.labels import ConfigValues

# Left to right, these read the last token of a text in bertkit, and the first in transformers.
READ_ONE_TOKEN = (["BertForSequenceClassification"], ["BertForMultipleChoice"])


def read_weights(
    checkpoint: Checkpoint,
    expected: Mapping[str, tuple[int, ...]],
    architecture: str,
    *,
    new_heads: bool = False,
) -> tuple[dict[str, NDArray[np.float32]], tuple[str, ...]]:
    """Return the weights of a class in float32, and with `new_heads` the heads that are missing.

    Heads that the class lacks are ignored. Heads, or a pooler, that the checkpoint lacks are a
    `CheckpointError`, or with `new_heads` left out.

    Args:
        expected: shapes by our name.
    """
    family = find_family(checkpoint.config)
    names, title = family.names, family.their_class(architecture)
    table, theirs = names.table(architecture), names.list_heads(checkpoint.tensors)
    missing = list_missing(checkpoint, expected, table)
    if missing and not new_heads:
        raise CheckpointError(
            f"{checkpoint.folder} has no {' and no '.join(missing)} head, which"
            f" {title} needs; load a model that has it, or train it with"
            f" {_name_command(missing, theirs)}"
        )
    _check_labels(checkpoint, expected, title, table)
    from_file = {
        name: shape for name, shape in expected.items() if name.partition(".")[0] not in missing
    }
    used = {table.find_part(their) for name in from_file for their in table.their_names(name)}
    unused = [head for head in HEADS if head not in used]
    tensors = import_tensors(
        checkpoint.tensors, from_file, checkpoint.folder, unused_parts=unused, names=table
    )
    return tensors, missing


def list_missing(
    checkpoint: Checkpoint, expected: Mapping[str, tuple[int, ...]], table: NameTable
) -> tuple[str, ...]:
    """Return the heads of which the checkpoint has no tensor.

    The layers of a head may be two parts of a file, of which each counts: the first layer that
    predicts a ModernBERT's words is also that of its classifiers.
    """
    wanted, found = set[tuple[str, str]](), set[tuple[str, str]]()
    for name in expected:
        head = name.partition(".")[0]
        for their in table.their_names(name):
            part = (head, table.find_part(their))
            wanted.add(part)
            if their in checkpoint.tensors:
                found.add(part)
    missing = {head for head, _ in wanted - found}
    return tuple(head for head in HEADS if head in missing)


def _name_command(missing: tuple[str, ...], found: tuple[str, ...]) -> str:
    """Return the command that trains missing heads."""
    command = "`bertkit finetune`"
    if "next_sentence" in missing:
        command = "`bertkit pretrain --model … --objective bert`"
    elif "masked_lm" in missing:
        command = "`bertkit pretrain --model …`"
    if "next_sentence" in missing and "masked_lm" in found:
        command += " or, without next sentence, `bertkit pretrain --model … --objective mlm`"
    return command


def _check_labels(
    checkpoint: Checkpoint,
    expected: Mapping[str, tuple[int, ...]],
    title: str,
    table: NameTable,
) -> None:
    """Check that a trained head has as many labels as the config of a class says."""
    for head in ("classifier", "qa_outputs"):
        name = f"{head}.weight"
        if name not in expected:
            continue
        (their,) = table.their_names(name)
        if their not in checkpoint.tensors:
            continue
        (wanted, _), shape = expected[name], checkpoint.tensors[their].shape
        if len(shape) == 2 and shape[0] != wanted:
            raise CheckpointError(
                f"{checkpoint.folder} has a {head} for {shape[0]:,} labels, and"
                f" {title} with this config has {wanted:,}; keep the"
                " checkpoint's num_labels and id2label, or load a checkpoint without this head"
            )


def store_head(config: ConfigValues, tensors: Mapping[str, LazyTensor]) -> dict[str, LazyTensor]:
    """Return the tensors to store: a head that transformers computes otherwise is marked."""
    is_own = is_own_head(config)
    reads_last = config.get("is_decoder") and config.get("architectures") in READ_ONE_TOKEN
    if CLASSIFIER not in tensors or not (is_own or reads_last):
        return dict(tensors)
    head, names = config.get("feature_head"), find_family(config).names
    scores_tokens = is_own and isinstance(head, dict) and head["scores"] == "token"
    marks = [ANSWERS] if scores_tokens else []
    if any((LAST_LAYER,) in own.values() for own in names.by_class.values()):
        marks.append(LAST_LAYER)
    return mark_own_head(tensors, marks)


def describe_config(config: ConfigValues, architecture: str, dtype: ElementType) -> dict[str, Any]:
    """Return the content of `config.json` for weights of a dtype."""
    # `torch_dtype` is the old name of `dtype`.
    sizes = {name: value for name, value in config.items() if name != "torch_dtype"}
    name = find_family(config).their_class(architecture)
    return {**sizes, "architectures": [name], "dtype": dtype.value}
