"""Weights of a model with LoRA: only what is trained is saved, in PEFT's format."""

from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.names import HEADS, LAYER
from bertkit.checkpoints.peft import (
    AdapterOrigin,
    name_factors,
    open_adapter_tensors,
    write_adapter,
)
from bertkit.checkpoints.torch_tensors import export_tensors, lazy_tensors, to_tensors
from bertkit.checkpoints.transfer import check_finite, import_tensors
from bertkit.models.bert.arrays import describe_config
from bertkit.models.bert.labels import ConfigValues
from bertkit.nn.low_rank import SCALE, add_low_rank

if TYPE_CHECKING:
    from bertkit.models.bert.pretrained import PretrainedBert

ENCODER = "encoder."
QUERY_KEY_VALUE = f"{LAYER}.attention.query_key_value.weight"


def adapt(model: "PretrainedBert", rank: int) -> tuple[int, int]:
    """Freeze the encoder and give it updates of low rank; the head stays as it is.

    Returns:
        The numbers of weights that are trained, and that are frozen.

    Raises:
        SettingsError: the rank isn't below that of the matrices.
    """
    for name, parameter in model.named_parameters():
        if name.startswith(ENCODER):
            parameter.requires_grad_(False)
    joined = model.config.names.names[QUERY_KEY_VALUE]  # one in files of some families
    add_low_rank(model, rank, len(joined))
    counts = {True: 0, False: 0}
    for parameter in model.parameters():
        counts[parameter.requires_grad] += parameter.numel()
    return counts[True], counts[False]


def list_adapted(model: nn.Module) -> dict[str, Tensor]:
    """Return the factors of all updates, and the weights of heads that are trained, by name."""
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (name.startswith(ENCODER) or name.partition(".")[0] in HEADS)
    }


def save_adapter(
    model: nn.Module, config: ConfigValues, folder: Path, origin: AdapterOrigin
) -> dict[str, FileRecord]:
    """Write the config and the adapter; return the records of the files by name."""
    tensors = {name: tensor.detach().cpu() for name, tensor in list_adapted(model).items()}
    check_finite(lazy_tensors(tensors))
    names = name_factors(find_family(config).names, type(model).__name__)
    foreign = lazy_tensors(export_tensors(tensors, names))
    dtype = next(iter(foreign.values())).dtype
    content = describe_config(config, type(model).__name__, dtype)
    return write_adapter(folder, content, foreign, origin, SCALE)


def fill_adapter(model: nn.Module, config: ConfigValues, folder: Path) -> None:
    """Load an adapter into a model with LoRA; errors as in `import_tensors`."""
    shapes = {name: tuple(tensor.shape) for name, tensor in list_adapted(model).items()}
    names = find_family(config).names
    foreign, path = open_adapter_tensors(folder, names)
    table = name_factors(names, type(model).__name__)
    tensors = to_tensors(import_tensors(foreign, shapes, path, names=table))
    model.load_state_dict(tensors, strict=False)
