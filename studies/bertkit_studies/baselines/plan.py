"""The plan of a baseline's training run: data, net and losses."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores
from bertkit_studies.recurrent.config import NetConfig
from bertkit_studies.recurrent.net import SavedNet


@dataclass(frozen=True)
class BaselinePlan:
    """Everything that the training of one baseline needs.

    Attributes:
        config: the net's configuration.
        begin: builds the net with its initial weights, from torch's default generator.
        load: loads the net from a checkpoint.
        tokenizer: the data's tokenizer, saved beside the weights.
        data_fingerprint: identifies the data.
        examples_at: as in `Job`.
        collate: as in `Job`.
        num_micro_batches: as in `Job`.
        held_out: the batches of every evaluation.
        score: the training loss, as in `Job`.
        judge: the loss of held-out batches.
        count_operations: net and micro-batch → floating-point operations of a training step.
        progress_metrics: as in `Job`.
        source: where the initial weights come from; empty if they are random.
    """

    config: NetConfig
    begin: Callable[[], SavedNet]
    load: Callable[[Path], SavedNet]
    tokenizer: Tokenizer
    data_fingerprint: str
    examples_at: Callable[[int], Sequence[Any]]
    collate: Callable[[Sequence[Any]], Any]
    held_out: Sequence[Any]
    score: Callable[[Any, Any], Scores]
    judge: Callable[[Any, Any], Scores]
    count_operations: Callable[[Any, Any], float]
    progress_metrics: Mapping[str, str]
    num_micro_batches: int = 1
    source: Mapping[str, str] = field(default_factory=dict)


def hash_arrays(*arrays: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of arrays, including their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
