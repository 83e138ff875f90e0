"""What an encoder computes of the rows to review, once: features for the layer, and vectors."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.config import FEATURE_HEAD
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.pretrained import TASK_HEADS, open_pretrained
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.review.rows import ReviewedRows
from bertkit.recipes.solved_head import Features, FrozenModel, computed_features
from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.task import AnyTask
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device, prepare_memory
from bertkit.training.job import Machine

SEED = 0
NO_TOKENS = TokenSequence([0], [0])  # of a sequence whose features are computed

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class ComputedRows:
    """What was computed of rows: the model with their examples, and what its last layer reads."""

    frozen: FrozenModel
    features: Features


def load_encoder(model: str | Path, rows: ReviewedRows) -> tuple[AnyTask, FineTunedBert, Tokenizer]:
    """Return the task of rows, a model's encoder below a new head for it, and its tokenizer."""
    parent = OpenModel.open(model)
    longest = min(rows.settings.max_length, parent.config.max_length)
    settings = rows.settings.model_copy(update={"max_length": longest})
    task = rows.kind.from_examples(settings, rows.examples)
    opened = open_pretrained(parent, task, FineTuneSettings())
    if task.reads_pairs:
        LoadedModel.of(opened).check_pairs()
    torch.manual_seed(SEED)
    kind = BertFeatureBased if FEATURE_HEAD in opened.changes else task.model_kind
    bert = kind.from_pretrained(opened.without_parts(TASK_HEADS), new_heads=True)
    return task, bert, opened.tokenizer


@contextmanager
def computed_rows(
    rows: ReviewedRows, task: AnyTask, model: FineTunedBert
) -> Iterator[ComputedRows]:
    """Compute rows that are encoded, in float32, so that every processor finds the same."""
    machine = choose_machine()
    examples = list(rows.labeled.encoded)
    frozen = FrozenModel(model.to(machine.device), task, examples, machine, SEED)
    with (
        tempfile.TemporaryDirectory(prefix="bertkit-") as folder,
        computed_features(Path(folder) / "rows", frozen) as features,
    ):
        light = [_forget_tokens(one, task) for one in frozen.examples]
        yield ComputedRows(replace(frozen, examples=light), features)


def choose_machine() -> Machine:
    """Return the device to compute on, in float32."""
    device = choose_device("auto")
    prepare_memory(device)
    return Machine(device, "fp32", peak_operations=float("inf"))


def _forget_tokens(encoded: Encoded, task: AnyTask) -> Encoded:
    """Return a row without token ids, where the loss doesn't ask how many there are."""
    if task.scored == "token":
        return encoded
    return replace(encoded, sequences=(NO_TOKENS,) * len(encoded.sequences))


def find_vectors(features: Features) -> Vectors:
    """Return a vector of unit length for each row: the mean of its features."""
    vectors = np.empty((len(features.row_ranges), features.rows.shape[1]), np.float32)
    for number, vector in enumerate(vectors):
        vector[:] = features.rows[features.find_rows([number])].mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, np.finfo(np.float32).tiny)
    return vectors
