"""Weights: initialization, loading from and saving to a checkpoint."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from bertkit.base.checksums import FileRecord
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import NameTable
from bertkit.checkpoints.torch_tensors import export_tensors, lazy_tensors, to_tensors
from bertkit.checkpoints.transfer import check_finite
from bertkit.models.bert.arrays import describe_config, read_weights, store_head
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.labels import ConfigValues


def initialize(model: nn.Module, config: BertConfig, prefix: str = "") -> None:
    """Initialize weights from the default generator: truncated normal; biases 0; norms 1.

    Args:
        config: says the standard deviation of each weight.
        prefix: stands before the names of the module's weights in the whole model.

    Source: google-research/bert, which truncates at two standard deviations.
    """
    if next(model.parameters()).is_meta:
        return  # there are no values to initialize
    for path, module in model.named_modules(prefix=prefix):
        for name, parameter in module.named_parameters(recurse=False):
            deviation = config.find_deviation(f"{path}.{name}")
            if name == "bias":
                nn.init.zeros_(parameter)
            elif isinstance(module, nn.LayerNorm):
                nn.init.ones_(parameter)
            else:
                nn.init.trunc_normal_(parameter, std=deviation, a=-2 * deviation, b=2 * deviation)


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
    model: nn.Module, checkpoint: Checkpoint, config: BertConfig, *, new_heads: bool = False
) -> tuple[str, ...]:
    """Load weights into a model built with `without_memory`; return its new heads.

    As in `read_weights`; with `new_heads`, those are initialized as in `initialize`, in the order
    returned.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    tensors, missing = read_weights(checkpoint, expected, type(model).__name__, new_heads=new_heads)
    model.load_state_dict(to_tensors(tensors), strict=False, assign=True)
    for head in missing:
        module = model.get_submodule(head)
        initialize(module.to_empty(device="cpu"), config, head)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return missing


def save_weights(
    model: nn.Module, config: ConfigValues, folder: Path, names: NameTable | None = None
) -> dict[str, FileRecord]:
    """Write a model as a Hugging Face folder, replacing files of the same names.

    The class name is the one that other tools read. Without names, they are those of the family.
    """
    names = names or find_family(config).names.table(type(model).__name__)
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    check_finite(lazy_tensors(tensors))
    foreign = lazy_tensors(export_tensors(tensors, names))
    dtype = next(iter(foreign.values())).dtype
    content = describe_config(config, type(model).__name__, dtype)
    return write_huggingface(folder, content, store_head(content, foreign))
