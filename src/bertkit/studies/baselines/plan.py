"""What a run is made of, whichever net it trains."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from bertkit.models.recurrent.config import NetConfig
from bertkit.models.recurrent.net import SavedNet
from bertkit.objectives.objective import PreTrainingLosses
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class BaselinePlan:
    """Data, and a net that learns from them.

    Attributes:
        config: the sizes.
        begin: the net with its first weights, drawn from the default generator.
        load: the net of a checkpoint.
        tokenizer: of the data; it is kept beside the weights.
        data_fingerprint: identifies the data.
        batches_at: step → its micro-batches; a pure function.
        held_out: what every evaluation reads.
        score: as in `Job`, while training.
        judge: the same of held-out batches.
        count_operations: net and micro-batch → floating-point operations of a training step.
        batch_tensors: as in `Job`.
        shares: as in `Job`.
        source: what the first weights come from; empty where they are drawn.
    """

    config: NetConfig
    begin: Callable[[], SavedNet]
    load: Callable[[Path], SavedNet]
    tokenizer: Tokenizer
    data_fingerprint: str
    batches_at: Callable[[int], Sequence[Any]]
    held_out: Sequence[Any]
    score: Callable[[Any, Any], PreTrainingLosses]
    judge: Callable[[Any, Any], PreTrainingLosses]
    count_operations: Callable[[Any, Any], float]
    batch_tensors: Callable[[Any], dict[str, Tensor]]
    shares: Mapping[str, str]
    source: Mapping[str, str] = field(default_factory=dict)


def hash_arrays(*arrays: npt.NDArray[Any]) -> str:
    """SHA-256 over numbers, their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
