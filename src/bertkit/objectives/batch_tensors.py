"""Conversion of a pre-training batch to named tensors, for a file, and back."""

from collections.abc import Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from bertkit.base.errors import DamagedFileError
from bertkit.data.order import ExampleKey
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packing import PackedBatch
from bertkit.objectives.objective import WordBatch

Batch = TypeVar("Batch", bound=WordBatch)


def batch_tensors(batch: WordBatch) -> dict[str, Tensor]:
    """Return a batch as named int64 tensors."""
    tensors = {
        "input_ids": batch.packed.input_ids,
        "token_type_ids": batch.packed.token_type_ids,
        "position_ids": batch.packed.position_ids,
        "lengths": torch.tensor(batch.packed.lengths),
        "positions": batch.positions,
        "labels": batch.labels,
        "keys": torch.tensor([astuple(key) for key in batch.keys]),
    }
    return tensors | {name: getattr(batch, name) for name in batch.label_limits}


def batch_from_tensors(
    tensors: dict[str, Tensor], kind: type[Batch], config: BertConfig, source: Path
) -> Batch:
    """Rebuild the batch that `batch_tensors` converted.

    Args:
        tensors: from a file that isn't trusted.
        kind: the batch's class.
        config: of the model that the batch is for.
        source: the file, for error messages.
    """
    if not _is_batch(tensors, kind.label_limits, config):
        raise DamagedFileError(
            f"{source} doesn't hold the tensors of a pre-training batch for this model"
        )
    return kind(
        packed=PackedBatch(
            input_ids=tensors["input_ids"],
            token_type_ids=tensors["token_type_ids"],
            position_ids=tensors["position_ids"],
            lengths=tuple(tensors["lengths"].tolist()),
        ),
        positions=tensors["positions"],
        labels=tensors["labels"],
        keys=tuple(ExampleKey(*key) for key in tensors["keys"].tolist()),
        **{name: tensors[name] for name in kind.label_limits},
    )


def _is_batch(
    tensors: dict[str, Tensor], label_limits: Mapping[str, int], config: BertConfig
) -> bool:
    """Whether names, dtypes, shapes and values are valid for a batch."""
    has_names = {"lengths", "labels"} <= tensors.keys()
    if not has_names or any(tensor.dtype != torch.int64 for tensor in tensors.values()):
        return False
    num_sequences, num_masked = tensors["lengths"].numel(), tensors["labels"].numel()
    num_tokens = int(tensors["lengths"].sum())
    shapes = {
        "input_ids": (num_tokens,),
        "token_type_ids": (num_tokens,),
        "position_ids": (num_tokens,),
        "lengths": (num_sequences,),
        "positions": (num_masked,),
        "labels": (num_masked,),
        "keys": (num_sequences, len(fields(ExampleKey))),
        **dict.fromkeys(label_limits, (num_sequences,)),
    }
    limits = {
        "input_ids": config.vocab_size,
        "token_type_ids": config.type_vocab_size,
        "position_ids": config.max_position_embeddings,
        "lengths": config.max_position_embeddings + 1,
        "positions": num_tokens,
        "labels": config.vocab_size,
        **label_limits,
    }
    return (
        num_sequences > 0
        and {name: tuple(tensor.shape) for name, tensor in tensors.items()} == shapes
        and all(bool((tensor >= 0).all()) for tensor in tensors.values())
        and bool((tensors["lengths"] > 0).all())
        and all(bool((tensors[name] < limit).all()) for name, limit in limits.items())
    )
