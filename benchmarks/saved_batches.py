"""Batches of pre-training as safetensors files, for the two sides of `bench_step.py`."""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from bertkit.data.order import ExampleKey
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.bert import PreTrainingBatch


def write_batches(folder: Path, batches: Sequence[PreTrainingBatch]) -> None:
    for number, batch in enumerate(batches):
        tensors = {
            "input_ids": batch.packed.input_ids,
            "token_type_ids": batch.packed.token_type_ids,
            "position_ids": batch.packed.position_ids,
            "lengths": torch.tensor(batch.packed.lengths),
            "positions": batch.positions,
            "labels": batch.labels,
            "next_sentence_labels": batch.next_sentence_labels,
            "keys": torch.tensor([astuple(key) for key in batch.keys]),
        }
        save_file(tensors, folder / f"{number:03d}.safetensors")


def read_batches(folder: Path) -> list[PreTrainingBatch]:
    return [read_batch(path) for path in sorted(folder.glob("*.safetensors"))]


def read_batch(path: Path) -> PreTrainingBatch:
    tensors = load_file(path)
    lengths, keys = tensors.pop("lengths").tolist(), tensors.pop("keys").tolist()
    return PreTrainingBatch(
        packed=PackedBatch(
            input_ids=tensors.pop("input_ids"),
            token_type_ids=tensors.pop("token_type_ids"),
            position_ids=tensors.pop("position_ids"),
            lengths=tuple(lengths),
        ),
        keys=tuple(ExampleKey(*key) for key in keys),
        **tensors,
    )
