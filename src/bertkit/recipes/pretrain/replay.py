"""Replays a dumped step: forward and backward with the same batch, weights and dropout."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.base.errors import CheckpointError
from bertkit.base.settings import list_differences, validate
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.checkpoints.huggingface import read_config
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import WordScoringBert
from bertkit.models.bert.weights import without_memory
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.objective import WordBatch, batch_from_tensors
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.engine import MASK, SEP
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Machine, MicroBatch
from bertkit.training.replica import ModelWithLoss
from bertkit.training.run import describe_versions
from bertkit.training.step import (
    BATCHES_FILE,
    RECORD_FILE,
    WEIGHTS_FILE,
    Dump,
    add_gradients,
    align_weights,
    is_finite,
    read_dump,
)


@dataclass(frozen=True)
class ReplayedExample:
    """One example of the step."""

    name: str  # epoch, shard and index, as in the run's messages
    text: str  # the model's input, with its masks


@dataclass(frozen=True)
class Replay:
    """The result of replaying a step."""

    step: int  # counted as in the log
    metrics: dict[str, float]
    recorded: dict[str, float]
    is_same: bool  # whether both are equal, bit for bit
    is_finite: bool
    first_module: tuple[str, int] | None  # with an output that wasn't finite, and its micro-batch
    broken_weights: list[str]  # parameters that weren't finite before the step
    broken_gradients: list[str]  # parameters whose gradient isn't finite
    differences: list[str]  # in software and machine
    examples: list[ReplayedExample]


def replay(path: Path, *, fp64: bool = False) -> Replay:
    """Compute a dumped step again; a result that is finite only with `fp64` means an overflow."""
    dump = read_dump(path)
    if (path / TASK_FILE).exists():
        raise CheckpointError(
            f"{path} is of `bertkit finetune`, whose steps can't be replayed; see"
            f" {WEIGHTS_FILE} and {BATCHES_FILE} there, or start again with a lower learning rate"
        )
    record = dump.record
    settings = validate(PretrainSettings, record.settings, str(path / RECORD_FILE))
    has_device = record.device == "cuda" and torch.cuda.is_available()
    device = torch.device("cuda" if has_device else "cpu")
    objective = OBJECTIVES[settings.objective]
    model = load_weights(path, dump, objective.model_kind).to(device)
    batches = [
        batch_from_tensors(tensors, objective.batch_kind, model.config, path / BATCHES_FILE)
        for tensors in dump.batches
    ]
    align_weights(model)
    if fp64:
        model = model.double()
    machine = Machine(device, "fp32" if fp64 else record.precision, peak_operations=1.0)
    with _watching(model) as broken_modules:
        metrics = add_gradients(
            ModelWithLoss(model, objective.loss),
            [MicroBatch(number, batch) for number, batch in enumerate(batches)],
            settings.seed,
            record.step - 1,
            machine,
        )
    gradients = {name: value.grad for name, value in model.named_parameters()}
    present = [gradient for gradient in gradients.values() if gradient is not None]
    metrics["gradient_norm"] = float(nn.utils.get_total_norm(present))
    recorded = {name: float(value) for name, value in record.metrics.items()}
    return Replay(
        step=record.step,
        metrics=metrics,
        recorded=recorded,
        is_same={name: repr(value) for name, value in metrics.items()} == record.metrics,
        is_finite=is_finite(metrics),
        first_module=next(iter(broken_modules), None),
        broken_weights=_list_broken(dict(model.named_parameters())),
        broken_gradients=_list_broken(gradients),
        differences=list_differences(
            record.versions, describe_versions(device, "fp64" if fp64 else record.precision)
        ),
        examples=_describe_examples(batches, Tokenizer.load(path)),
    )


def load_weights(path: Path, dump: Dump, kind: type[WordScoringBert]) -> WordScoringBert:
    """Build the model of a dump, without requiring finite weights."""
    config = BertConfig.from_dict(read_config(path), path)
    if config.is_decoder != kind.may_be_causal:
        raise CheckpointError(f"{path}: is_decoder of its config contradicts its objective")
    with without_memory():
        model = kind(config)
    expected = {name: (value.shape, value.dtype) for name, value in model.state_dict().items()}
    found = {name: (value.shape, value.dtype) for name, value in dump.weights.items()}
    if odd := sorted(name for name, _ in expected.items() ^ found.items()):
        raise CheckpointError(
            f"{path / WEIGHTS_FILE} doesn't hold the weights of the config beside it:"
            f" {', '.join(sorted(set(odd))[:4])}"
        )
    model.load_state_dict(dump.weights, assign=True)
    return model.requires_grad_()


@contextmanager
def _watching(model: nn.Module) -> Iterator[list[tuple[str, int]]]:
    """Collect name and earlier calls of each module whose output isn't finite, in call order."""
    found: list[tuple[str, int]] = []
    num_calls: dict[str, int] = {}

    def look(name: str, output: Any) -> None:
        if isinstance(output, Tensor) and not bool(torch.isfinite(output).all()):
            found.append((name, num_calls.get(name, 0)))
        num_calls[name] = num_calls.get(name, 0) + 1

    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: look(name, output))
        for name, module in model.named_modules()
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _list_broken(tensors: dict[str, Any]) -> list[str]:
    return [
        name
        for name, tensor in tensors.items()
        if tensor is not None and not bool(torch.isfinite(tensor).all())
    ]


def _describe_examples(batches: Sequence[WordBatch], tokenizer: Tokenizer) -> list[ReplayedExample]:
    examples = []
    for batch in batches:
        rows = torch.split(batch.packed.input_ids, list(batch.packed.lengths))
        names = batch.describe().split(", ")
        examples += [
            ReplayedExample(name, decode_with_marks(ids.tolist(), tokenizer))
            for name, ids in zip(names, rows, strict=True)
        ]
    return examples


def decode_with_marks(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """Decode token ids to text, keeping [MASK] and [SEP]."""
    marks = {tokenizer.mask_id: MASK, tokenizer.sep_id: SEP}
    parts: list[str] = []
    start = 0
    for place, id_ in enumerate(ids):
        if id_ in marks:
            parts += [tokenizer.decode(ids[start:place]), marks[id_]]
            start = place + 1
    return " ".join(part for part in (*parts, tokenizer.decode(ids[start:])) if part)
