"""One side of `bench_memory.py`: two training steps in a process of their own, and their peak.

    python benchmarks/step_memory.py bertkit MODEL BATCH_SIZE FOLDER
    python benchmarks/step_memory.py transformers MODEL BATCH_SIZE FOLDER

FOLDER has the batches; what is printed is JSON.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.tasks.objectives.bert import PreTrainingBatch, score
from bertkit.tasks.objectives.objective import batch_from_tensors
from bertkit.training.budget import peak_memory_bytes
from bertkit.training.device import prepare_memory

NUM_STEPS = 2  # the second one has AdamW's state beside the activations


def main() -> None:
    """Take the steps of a side."""
    side, name, batch_size, folder = sys.argv[1:]
    print(json.dumps(SIDES[side](name, Path(folder) / f"{side}-{batch_size}.safetensors")))


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
