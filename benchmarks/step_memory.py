"""One side of `bench_memory.py`: two training steps in a process of their own, and their peak.

    python benchmarks/step_memory.py batches BATCH_SIZE … FOLDER
    python benchmarks/step_memory.py bertkit MODEL BATCH_SIZE FOLDER
    python benchmarks/step_memory.py transformers MODEL BATCH_SIZE FOLDER

The first writes the batches that the others read; the others print JSON.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.hardware.allocator import prepare_memory
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.objectives.batch_tensors import batch_from_tensors, batch_tensors
from bertkit.objectives.bert import PreTrainingBatch, score
from bertkit.recipes.pretrain.evaluation import build_objective
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.budget import peak_memory_bytes

NUM_STEPS = 2  # the second one has AdamW's state beside the activations
MAX_LENGTH = 128


def main() -> None:
    """Do what the first word says."""
    side, *words, folder = sys.argv[1:]
    if side == "batches":
        write_batches([int(word) for word in words], Path(folder))
        return
    name, batch_size = words
    print(json.dumps(SIDES[side](name, Path(folder) / f"{side}-{batch_size}.safetensors")))


def write_batches(batch_sizes: list[int], folder: Path) -> None:
    """The first batch of a run on Python's own documentation, for both sides."""
    from bench_step import pad_batch, prepare_documentation

    with tempfile.TemporaryDirectory() as data:
        shards = ShardSet.open(prepare_documentation(Path(data)))
        settings = PretrainSettings(max_length=MAX_LENGTH)
        objective = build_objective(shards.train, shards, shards.load_tokenizer(), settings)
        order = ExampleOrder([part.num_tokens for part in shards.train], objective.plan, seed=0)
        for size in batch_sizes:
            batch = objective.batch(order.examples(0, size))
            save_file(batch_tensors(batch), folder / f"bertkit-{size}.safetensors")
            save_file(pad_batch(batch), folder / f"transformers-{size}.safetensors")


def measure_bertkit(name: str, path: Path) -> dict[str, int]:
    """Steps of our model, set up as `bertkit pretrain` does it."""
    prepare_memory(torch.device("cpu"))
    config = BertConfig.preset(name)
    batch = batch_from_tensors(load_file(path), PreTrainingBatch, config, path)
    counts = batch.target_counts

    def loss_of(model: nn.Module) -> Tensor:
        losses = score(model, batch).losses  # type: ignore[arg-type]
        return torch.stack([losses[part] / count for part, count in counts.items()]).sum()

    return take_steps(lambda: BertForPreTraining(config), loss_of)


def measure_transformers(name: str, path: Path) -> dict[str, int]:
    """Steps of transformers' model, with SDPA attention."""
    from transformers import BertConfig as TheirConfig
    from transformers import BertForPreTraining as TheirModel

    batch = load_file(path)
    config = TheirConfig(**BertConfig.preset(name).to_dict(), attn_implementation="sdpa")
    return take_steps(lambda: TheirModel(config), lambda model: model(**batch).loss)


def take_steps(
    build: Callable[[], nn.Module], loss_of: Callable[[nn.Module], Tensor]
) -> dict[str, int]:
    """Forward, backward and AdamW; bytes held at most before the model was there, and at all."""
    libraries_bytes = peak_memory_bytes(torch.device("cpu"))
    model = build().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {
        "libraries_bytes": libraries_bytes,
        "peak_bytes": peak_memory_bytes(torch.device("cpu")),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


SIDES: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "bertkit": measure_bertkit,
    "transformers": measure_transformers,
}

if __name__ == "__main__":
    main()
