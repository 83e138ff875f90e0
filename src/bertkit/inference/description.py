"""What a model folder is, told without reading its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.base.files import read_json
from bertkit.checkpoints.run_folder import find_model_folder
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.training.log import read_log
from bertkit.training.run import LOG_FILE, Run


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
    folder = find_model_folder(Path(path))
    values = read_json(folder / "config.json", limit_bytes=1 << 20)
    config = BertConfig.from_dict(values, folder)
    architecture = str((values.get("architectures") or ["BertModel"])[0])
    with torch.device("meta"):
        model = (
            BertForPreTraining(config)
            if architecture == BertForPreTraining.__name__
            else BertModel(config)
        )
    return ModelDescription(
        folder=folder,
        architecture=architecture,
        config=config,
        parameters=count_parameters(model),
        num_attention_heads=config.num_hidden_layers * config.num_attention_heads,
        training=_describe_training(Path(path)),
    )


def count_parameters(model: BertModel | BertForPreTraining) -> dict[str, int]:
    """Number of parameters by part, the encoder's layers as one."""
    parts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = ".".join(name.split(".")[: 2 if name.startswith("encoder.") else 1])
        parts[part] = parts.get(part, 0) + parameter.numel()
    return parts


def _describe_training(path: Path) -> dict[str, Any] | None:
    run = Run(path)
    record = run.read_record()
    if record is None:
        return None
    state = run.newest_state()
    evaluations = [
        row
        for row in read_log(path / LOG_FILE)
        if row["event"] == "eval" and row["step"] <= state.step
    ]
    return {
        "steps": state.step,
        "of_steps": record.num_steps,
        "tokens": state.tokens,
        "elapsed_seconds": state.elapsed_seconds,
        "held_out": evaluations[-1] if evaluations else None,
        "settings": record.settings,
    }
