"""What a model folder is, told by its config and the header of its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import CheckpointError, MissingFileError
from bertkit.base.files import read_json
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.huggingface import WEIGHTS_FILE, has_weights, read_config
from bertkit.checkpoints.names import count_parameters
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.checkpoints.transfer import export_tensors
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.training.log import read_log
from bertkit.training.run import LOG_FILE, STATE_FILE, Run, RunState


@dataclass(frozen=True)
class ModelDescription:
    """Sizes, parameters, and the training so far.

    Attributes:
        folder: where the files are.
        architecture: the model's class, as `config.json` names it.
        config: the sizes.
        parameters: number of parameters by part.
        num_attention_heads: heads of all layers together.
        training: steps, tokens and the last evaluation; None where it isn't a run.
    """

    folder: Path
    architecture: str
    config: BertConfig
    parameters: dict[str, int]
    num_attention_heads: int
    training: dict[str, Any] | None

    @property
    def num_parameters(self) -> int:
        """All parameters together; tied ones count once."""
        return sum(self.parameters.values())


def describe(path: str | Path) -> ModelDescription:
    """Describe a run or a Hugging Face folder.

    Raises:
        MissingFileError: no model is there.
        CheckpointError: its config isn't one of a BERT.
        DamagedFileError: a file was cut short or altered.
    """
    folder = find_checkpoint(Path(path), reading=(STATE_FILE,))
    values = read_config(folder)
    if has_weights(folder):
        checkpoint = open_checkpoint(Path(path))
        shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    config = BertConfig.from_dict(values, folder)
    architecture = _read_architecture(values, folder)
    if not has_weights(folder):
        shapes = _plan_shapes(architecture, config, folder)
    return ModelDescription(
        folder=folder,
        architecture=architecture,
        config=config,
        parameters=count_parameters(shapes),
        num_attention_heads=config.num_hidden_layers * config.num_attention_heads,
        training=_describe_training(Path(path), folder),
    )


def _read_architecture(values: dict[str, Any], folder: Path) -> str:
    """The model's class; the backbone where the config names none."""
    names = values.get("architectures") or [BertModel.__name__]
    if not isinstance(names, list) or not isinstance(names[0], str):
        raise CheckpointError(f"{folder}: architectures must be a list of names, and is {names!r}")
    return names[0]


def _plan_shapes(architecture: str, config: BertConfig, folder: Path) -> dict[str, tuple[int, ...]]:
    """The tensors that a model would have which has no weights yet."""
    kinds = {kind.__name__: kind for kind in (BertModel, BertForPreTraining)}
    if architecture not in kinds:
        raise MissingFileError(
            f"{folder} has no {WEIGHTS_FILE}, which alone tells how large a {architecture} is"
        )
    with torch.device("meta"):
        tensors = export_tensors(kinds[architecture](config).state_dict())
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _describe_training(path: Path, folder: Path) -> dict[str, Any] | None:
    record = Run(path).read_record()
    if record is None:
        return None
    state = RunState.model_validate(read_json(folder / STATE_FILE))
    evaluations = [
        row for row in read_log(path / LOG_FILE, state.num_log_rows) if row["event"] == "eval"
    ]
    return {
        "steps": state.step,
        "of_steps": record.num_steps,
        "tokens": state.tokens,
        "elapsed_seconds": state.elapsed_seconds,
        "held_out": evaluations[-1] if evaluations else None,
        "settings": record.settings,
    }
