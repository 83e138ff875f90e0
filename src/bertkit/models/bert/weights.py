"""Weights: how they begin, and how they come from and go to a Hugging Face folder."""

from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError
from bertkit.checkpoints import huggingface
from bertkit.models.bert.config import BertConfig


class ConfiguredModel(Protocol):
    """A model class that is built from a config alone."""

    config: BertConfig

    def __init__(self, config: BertConfig) -> None: ...


Model = TypeVar("Model", bound=nn.Module)


def initialise(model: nn.Module, standard_deviation: float) -> None:
    """Draw initial weights: truncated normal; biases 0; norms 1; from the default generator.

    Source: google-research/bert, which cuts the normal at two standard deviations.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.trunc_normal_(
                module.weight,
                std=standard_deviation,
                a=-2 * standard_deviation,
                b=2 * standard_deviation,
            )
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


def load_model(kind: type[Model], path: Path) -> Model:
    """Build a model of a class from a folder, every weight of it, ready for evaluation.

    Raises:
        MissingFileError: no model is there.
        CheckpointError: the config or tensors don't fit.
        DamagedFileError: a file was cut short or altered.
    """
    config_values, foreign = huggingface.read_folder(path)
    config = BertConfig.from_dict(config_values, path)
    with torch.device("meta"):
        model = kind(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    tensors = huggingface.import_tensors(foreign, expected, path)
    model.load_state_dict(tensors, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model.eval()


def save_model(model: nn.Module, folder: Path) -> dict[str, FileRecord]:
    """Write a model as a Hugging Face folder; files of the same names are replaced.

    Returns:
        What was written, by file name.

    Raises:
        CheckpointError: a weight isn't finite.
        StorageError: the disk refused.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise CheckpointError(f"not saved: weights with NaN or infinity in {', '.join(broken)}")
    values: dict[str, Any] = model.config.to_dict()  # type: ignore[union-attr, operator]
    values.pop("torch_dtype", None)  # the old name of dtype
    values["architectures"] = [type(model).__name__]
    values["dtype"] = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    return huggingface.write_folder(folder, values, huggingface.export_tensors(tensors))
