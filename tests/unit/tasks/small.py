"""A tokenizer of ten words, and a model that is trained on a task in some steps."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
import torch

from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.inference.engines.torch_engine import compute_scores
from bertkit.inference.predictor import (
    Answerer,
    AnyPredictor,
    Chooser,
    Classifier,
    Predictor,
    Regressor,
    Tagger,
)
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.tasks.batch import Encoded, Logits, compute_logits
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.saved import save_task
from bertkit.tasks.task import AnyTask
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

WORDS = ("the", "a", "cat", "dog", "fox", "saw", "lost", "hat", "not", "##s")
TOKENIZER = Tokenizer([*SPECIAL_TOKENS, *WORDS])


def table_of(*columns: str, **roles: str) -> RecordTable:
    """A table that has columns, and nothing else that a parser asks for."""
    return RecordTable("t.csv", "csv", None, columns=columns or None, roles=roles)  # type: ignore[arg-type]


def record_of(**values: object) -> Record:
    """A row."""
    return Record(values, "t.csv, line 2")


def negative_log_likelihood(logits, labels, temperature=1.0) -> float:
    """The mean of -log p(label)."""
    shifted = (logits - np.max(logits, axis=1, keepdims=True)) / temperature
    return -scipy.special.log_softmax(shifted, axis=1)[np.arange(len(labels)), labels].mean()


def train(
    task: AnyTask, examples: Sequence[Any], num_steps: int = 40, tokenizer=TOKENIZER
) -> FineTunedBert:
    """A model that has learned the examples."""
    torch.manual_seed(0)
    config = BertConfig.from_dict(
        {
            "model_type": "bert",
            "vocab_size": tokenizer.vocab_size,
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 32,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "initializer_range": 0.2,
            **task.config_changes,
        },
        "the test",
    )
    model = task.model_kind(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    batch = TaskBatch.collate(task.encode(examples, tokenizer), range(len(examples)))
    for _ in range(num_steps):
        loss = task.loss(model.scores(batch.packed), batch).losses["task"]
        optimizer.zero_grad()
        (loss / batch.target_counts["task"]).backward()
        optimizer.step()
    return model.eval()


def score(
    task: AnyTask, model: FineTunedBert, examples: Sequence[Any], tokenizer=TOKENIZER
) -> tuple[list[Encoded], list[Logits]]:
    """Examples as token ids, and what a model makes of them."""
    encoded = task.encode(examples, tokenizer)
    compute = partial(compute_scores, model, device=torch.device("cpu"))
    return encoded, compute_logits(compute, encoded, scored=task.scored, tokens_per_batch=64)


def decode(
    task: AnyTask,
    examples: Sequence[Any],
    encoded: Sequence[Encoded],
    logits: Sequence[Logits],
) -> list[Any]:
    """The answers."""
    return [task.decode(*row) for row in zip(examples, encoded, logits, strict=True)]


def learn(
    task: AnyTask, examples: Sequence[Any], folder: Path, num_steps=40, tokenizer=TOKENIZER
) -> tuple[AnyPredictor, Evaluation]:
    """Train a model, fit the task's numbers and evaluate it, then save and load it."""
    model = train(task, examples, num_steps, tokenizer)
    encoded, logits = score(task, model, examples, tokenizer)
    fitted = task.fit_numbers(examples, encoded, logits)
    predictions = decode(fitted, examples, encoded, logits)
    evaluation = fitted.score(examples, predictions).evaluate()
    assert fitted.score(examples, predictions).metrics.items() <= evaluation.metrics.items()
    model.save_pretrained(folder)
    tokenizer.save(folder)
    save_task(folder, fitted)
    kinds = {kind.task_kind: kind for kind in (Classifier, Regressor, Tagger, Answerer, Chooser)}
    predictor = kinds.get(type(task), Predictor).load(folder, device="cpu", engine="torch")
    assert predictor.task == fitted
    return predictor, evaluation
