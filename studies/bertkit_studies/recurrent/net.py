"""The base class of the recurrent networks: a config, loading and saving."""

import math
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.base.members import find_member
from bertkit.checkpoints.file_names import CONFIG_FILE, SAFETENSORS_FILE
from bertkit.checkpoints.huggingface import read_config, write_huggingface
from bertkit.checkpoints.names import NameTable
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.checkpoints.safetensors_file import open_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors, to_tensors
from bertkit.checkpoints.transfer import check_finite, import_tensors
from bertkit.models.bert.weights import without_memory
from bertkit_studies.recurrent.config import NetConfig

OWN_NAMES = NameTable(
    their_names=lambda name: (name,),
    find_part=lambda name: name.partition(".")[0],
    copies={},
    dropped=(),
)


class SavedNet(nn.Module):
    """Base of the networks that are saved with a config.

    Args:
        config: the sizes.
    """

    config_kind: ClassVar[type[NetConfig]]

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Self:
        """Load what `save_pretrained` wrote, in evaluation mode.

        Args:
            path: the folder, a run or one of its checkpoints.

        Raises:
            MissingFileError: there is no model at the path.
            CheckpointError: it is a model of another kind, or its tensors don't fit its config.
            DamagedFileError: a file is truncated or altered.
            UnsafeFileError: a file would run code, leave its folder or use unbounded memory.
        """
        folder = find_checkpoint(Path(path), reading=(CONFIG_FILE, SAFETENSORS_FILE))
        config = cls.config_kind.from_dict(read_config(folder), folder)
        with without_memory():
            net = cls(config)
        expected = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
        foreign = open_safetensors(find_member(folder, SAFETENSORS_FILE))
        tensors = to_tensors(import_tensors(foreign, expected, folder, names=OWN_NAMES))
        trainable = {name: each.requires_grad for name, each in net.named_parameters()}
        net.load_state_dict(tensors, assign=True)
        for name, parameter in net.named_parameters():
            parameter.requires_grad_(trainable[name])
        return net.eval()

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write `config.json` and `model.safetensors`; return their records by file name.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: writing failed.
        """
        tensors = lazy_tensors(self.state_dict())
        check_finite(tensors)
        return write_huggingface(Path(folder), self.config.to_dict(), tensors)


def draw_embeddings(num_entries: int, num_features: int) -> nn.Embedding:
    """Build an embedding table, with vectors of length about 1 from the default generator.

    The output layer is tied to it; torch's larger initial vectors would give overconfident logits.
    """
    table = nn.Embedding(num_entries, num_features)
    limit = math.sqrt(3.0 / num_features)
    nn.init.uniform_(table.weight, -limit, limit)
    return table


def count_weights(*modules: nn.Module) -> int:
    """Count the weights of the modules' matrices, which each token is multiplied with."""
    parameters = [each for module in modules for each in module.parameters()]
    return sum(each.numel() for each in parameters if each.dim() == 2)
