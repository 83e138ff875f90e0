"""A BiLSTM of two layers on the hidden states of a frozen encoder, trained on a labeled task.

Source: Devlin et al. 2018, section 5.3.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.models.bert.config import TAGGING
from bertkit.models.bert.encoder import build_dropout
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.finetune.job import FineTuningJob, decide_steps
from bertkit.recipes.finetune.pretrained import load_pretrained, open_pretrained
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.training.job import Machine
from bertkit.training.replica import Replica
from bertkit.training.step import take_step
from bertkit_studies.probes.downstream import LabeledTask
from bertkit_studies.recurrent.packed_nets import join_ends, run_net

NUM_LSTM_LAYERS = 2


@dataclass(frozen=True)
class BiLstm:
    """What reads a frozen encoder.

    Attributes:
        layers: the encoder's layers whose hidden states are concatenated; -1 is the last.
        hidden_size: features of each direction.
    """

    layers: tuple[int, ...] = (-1,)
    hidden_size: int = 64


class FrozenBiLstm(nn.Module):
    """Logits from a BiLSTM: of each token, or of a text by the end states of both directions.

    Args:
        pretrained: a model with the encoder, which isn't trained.
        bilstm: sizes and layers.
    """

    def __init__(self, pretrained: FineTunedBert, bilstm: BiLstm) -> None:
        super().__init__()
        self.config, self.scored = pretrained.config, pretrained.scored
        self.encoder = pretrained.encoder.requires_grad_(False)
        self.layers = bilstm.layers
        self.lstm = nn.LSTM(
            self.config.hidden_size * len(bilstm.layers),
            bilstm.hidden_size,
            num_layers=NUM_LSTM_LAYERS,
            bidirectional=True,
        )
        self.dropout = build_dropout(self.config, TAGGING)
        self.classifier = nn.Linear(2 * bilstm.hidden_size, self.config.num_labels)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; the encoder never has dropout."""
        super().train(mode)
        self.encoder.eval()
        return self

    def scores(self, batch: PackedBatch) -> Float[Tensor, "rows labels"]:
        """Return logits: a row for each token, or for each text."""
        with torch.no_grad():
            states = list(self.encoder.hidden_states(batch))
        tokens = torch.cat([states[layer] for layer in self.layers], dim=1)
        rows = run_net(self.lstm, tokens, batch.lengths)
        if self.scored != "token":
            rows = join_ends(rows, batch)
        scores: Tensor = self.classifier(self.dropout(rows))
        return scores

    def count_operations(self, batch: PackedBatch) -> float:
        """Count a training step's operations in the encoder."""
        return self.encoder.count_operations(batch)


def score_bilstm(
    task: LabeledTask, checkpoint: Path, bilstm: BiLstm, settings: FineTuneSettings
) -> float:
    """Train a BiLSTM on a frozen checkpoint; return the task's metric after the best epoch.

    Args:
        task: labeled texts, pairs or words.
        checkpoint: the pre-trained model.
        bilstm: sizes and layers.
        settings: settings of training, as for fine-tuning.
    """
    data = task.open(settings)
    pretrained = open_pretrained(checkpoint, data.task, settings)
    data.encode(pretrained.tokenizer)
    machine = Machine.choose(settings, lambda: pretrained.config.hidden_size)
    torch.manual_seed(settings.seed)
    model = FrozenBiLstm(load_pretrained(pretrained, data.task.model_kind), bilstm)
    job = FineTuningJob(data, model.to(machine.device), machine, settings)  # type: ignore[arg-type]
    replica, best = Replica.build(job), -math.inf
    num_steps = decide_steps(job.settings, job.num_epoch_steps)
    for step in range(num_steps):
        take_step(job, replica, step, job.settings.learning_rate_at(step, num_steps))
        if step + 1 == num_steps or (step + 1) % job.num_epoch_steps == 0:
            best = max(best, job.evaluate().get(data.task.metric, -math.inf))
    return best
