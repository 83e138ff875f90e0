"""Check a foreign checkpoint's tensors against its config, and convert their dtype."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bertkit.base.errors import CheckpointError
from bertkit.base.progress import ProgressBar
from bertkit.checkpoints.checkpoint import Checkpoint, LazyTensor
from bertkit.checkpoints.names import COPIES, DROPPED, list_heads
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.checkpoints.sentence_transformers.modules import Dense, Module
from bertkit.checkpoints.transfer import is_finite, list_problems, list_unequal_copies, report
from bertkit.models.bert.architectures import expected_shapes, find_architecture
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.weights import describe_config


@dataclass(frozen=True)
class ConvertedWeights:
    """The parts of a checkpoint that will be written.

    Attributes:
        config: the model's sizes and labels.
        architecture: the model's class, as `config.json` names it.
        heads: all heads found, including those that the architecture doesn't use.
        tensors: by current name; each is read, checked and converted lazily.
        dropped: the source's tensors that are copies or not weights.
    """

    config: BertConfig
    architecture: str
    heads: tuple[str, ...]
    tensors: Mapping[str, LazyTensor]
    dropped: tuple[str, ...]

    def describe(self) -> dict[str, Any]:
        """Return the content of `config.json`; its dtype is that of most of the weights."""
        sizes: Counter[torch.dtype] = Counter()
        for tensor in self.tensors.values():
            sizes[tensor.dtype] += tensor.nbytes
        ((dtype, _),) = sizes.most_common(1)
        return describe_config(self.config.to_dict(), self.architecture, dtype)


def convert_weights(
    checkpoint: Checkpoint, dtype: torch.dtype | None, progress: ProgressBar
) -> ConvertedWeights:
    """Check each tensor against the config; only tied copies are read yet.

    Args:
        checkpoint: a checkpoint of any format.
        dtype: dtype of the written weights; None keeps that of the source.
        progress: advanced by the bytes of each tensor when it is read.
    """
    heads = list_heads(checkpoint.tensors)
    architecture = find_architecture(checkpoint.config, heads, checkpoint.folder)
    config = BertConfig.from_dict(checkpoint.config, checkpoint.folder)
    expected = expected_shapes(config, architecture, heads)
    problems = list_problems(checkpoint.tensors, expected)
    report(problems or list_unequal_copies(checkpoint.tensors), checkpoint.folder)
    dropped = {name for name in checkpoint.tensors if name in DROPPED or name in COPIES}
    kept = {name: t for name, t in checkpoint.tensors.items() if name not in dropped}
    return ConvertedWeights(
        config=config,
        architecture=architecture,
        heads=heads,
        tensors={name: recast(name, t, dtype, progress) for name, t in kept.items()},
        dropped=tuple(sorted(dropped)),
    )


def recast_modules(
    model: SentenceModel, dtype: torch.dtype | None, progress: ProgressBar
) -> SentenceModel:
    """Convert the weights of the modules after the encoder to a dtype."""
    modules: list[Module] = []
    for number, module in enumerate(model.modules, start=1):
        if isinstance(module, Dense):
            weight = recast(f"weight of module {number}", module.weight, dtype, progress)
            bias = module.bias and recast(f"bias of module {number}", module.bias, dtype, progress)
            module = replace(module, weight=weight, bias=bias)
        modules.append(module)
    return replace(model, modules=tuple(modules))


def recast(
    name: str, tensor: LazyTensor, dtype: torch.dtype | None, progress: ProgressBar
) -> LazyTensor:
    """Return a lazy tensor that is checked and converted to a dtype when it is read."""
    return replace(
        tensor,
        dtype=dtype or tensor.dtype,
        read=partial(_read_recast, name, tensor, dtype, progress),
    )


def _read_recast(
    name: str, tensor: LazyTensor, dtype: torch.dtype | None, progress: ProgressBar
) -> Tensor:
    """Read a tensor, check that it is finite, and convert it to a dtype."""
    values = tensor.read()
    if not is_finite(values):
        raise CheckpointError(f"{name} has NaN or infinity; nothing was written")
    progress.advance(tensor.nbytes)
    if dtype is None or dtype == values.dtype:
        return values
    recast = values.to(dtype)
    if not is_finite(recast):
        raise CheckpointError(
            f"{name} has values up to {values.abs().max():.4g}, and {dtype} holds at most"
            f" {torch.finfo(dtype).max:.4g}; take float32 or bfloat16. Nothing was written"
        )
    return recast
