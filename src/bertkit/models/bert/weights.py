"""Weights: initialization, loading from and saving to a checkpoint."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from bertkit.base.checksums import FileRecord
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import BERT, NameTable
from bertkit.checkpoints.transfer import (
    CLASSIFIER,
    AnyTensor,
    check_finite,
    export_tensors,
    is_own_head,
    mark_own_head,
)
from bertkit.models.bert.arrays import read_weights
from bertkit.models.bert.labels import ConfigValues

# Left to right, these read the last token of a text in bertkit, and the first in transformers.
READ_ONE_TOKEN = (["BertForSequenceClassification"], ["BertForMultipleChoice"])


def initialize(model: nn.Module, standard_deviation: float) -> None:
    """Initialize weights from the default generator: truncated normal; biases 0; norms 1.

    Source: google-research/bert, which truncates at two standard deviations.
    """
    if next(model.parameters()).is_meta:
        return  # there are no values to initialize
    limit = 2 * standard_deviation
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if name == "bias":
                nn.init.zeros_(parameter)
            elif isinstance(module, nn.LayerNorm):
                nn.init.ones_(parameter)
            else:
                nn.init.trunc_normal_(parameter, std=standard_deviation, a=-limit, b=limit)


class _WithoutValues(TorchFunctionMode):
    """Skips the random initialization of torch's own modules."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Collection[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if function in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return function(*args, **kwargs)


@contextmanager
def without_memory() -> Iterator[None]:
    """Build modules on the "meta" device: shapes without memory, however large a config claims.

    Initialization is skipped, because torch would load its compiler for it, which takes seconds.
    """
    with torch.device("meta"), _WithoutValues():
        yield


@in_own_thread
def fill_model(
    model: nn.Module, checkpoint: Checkpoint, *, standard_deviation: float, new_heads: bool = False
) -> tuple[str, ...]:
    """Load weights into a model built with `without_memory`; return its new heads.

    As in `read_weights`; with `new_heads`, those are initialized from the default generator with
    this standard deviation, in the order returned.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    tensors, missing = read_weights(checkpoint, expected, type(model).__name__, new_heads=new_heads)
    model.load_state_dict(tensors, strict=False, assign=True)
    for head in missing:
        module = model.get_submodule(head)
        initialize(module.to_empty(device="cpu"), standard_deviation)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return missing


def save_weights(
    model: nn.Module, config: ConfigValues, folder: Path, names: NameTable = BERT
) -> dict[str, FileRecord]:
    """Write a model as a Hugging Face folder, replacing files of the same names.

    The class name is the one that other tools read.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    check_finite(tensors)
    dtype = next(iter(tensors.values())).dtype
    content = describe_config(config, type(model).__name__, dtype)
    return write_huggingface(folder, content, store_head(content, export_tensors(tensors, names)))


def store_head(config: ConfigValues, tensors: Mapping[str, AnyTensor]) -> dict[str, AnyTensor]:
    """Return the tensors to store: a head that transformers computes otherwise is marked."""
    is_own = is_own_head(config)
    reads_last = config.get("is_decoder") and config.get("architectures") in READ_ONE_TOKEN
    if CLASSIFIER not in tensors or not (is_own or reads_last):
        return dict(tensors)
    head = config.get("feature_head")
    scores_tokens = is_own and isinstance(head, dict) and head["scores"] == "token"
    return mark_own_head(tensors, scores_tokens=scores_tokens)


def describe_config(config: ConfigValues, architecture: str, dtype: torch.dtype) -> dict[str, Any]:
    """Return the content of `config.json` for weights of a dtype."""
    # `torch_dtype` is the old name of `dtype`.
    sizes = {name: value for name, value in config.items() if name != "torch_dtype"}
    dtype_name = str(dtype).removeprefix("torch.")
    return {**sizes, "architectures": [architecture], "dtype": dtype_name}
