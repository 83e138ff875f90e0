"""One side of `bench_step.py`: a model in a process of its own, which takes a step when told to.

    python benchmarks/step_side.py {bertkit,transformers,kept,compiled} FOLDER

It reads numbers of batches from standard input, a line each, and answers with a line of JSON each.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from bertkit.models.bert.heads import BertForPreTraining
from bertkit.objectives.batch_tensors import batch_from_tensors
from bertkit.objectives.bert import PreTrainingBatch, score
from bertkit.training.allocator import keep_freed_memory

Losses = list[Callable[[], Tensor]]


def main() -> None:
    """Build the side, tell the loss of batch 0 without dropout, then obey."""
    side, folder = sys.argv[1], Path(sys.argv[2])
    if side in ("bertkit", "kept"):
        keep_freed_memory()  # as `bertkit pretrain` does
    paths = sorted(folder.glob(f"{'bertkit' if side == 'bertkit' else 'transformers'}-*"))
    model, losses = SIDES[side](folder / "model", paths)
    with torch.no_grad():
        model.eval()
        print(json.dumps({"loss": float(losses[0]())}), flush=True)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for line in sys.stdin:
        started = time.perf_counter()
        optimizer.zero_grad()
        losses[int(line)]().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)


def build_bertkit(folder: Path, paths: list[Path]) -> tuple[nn.Module, Losses]:
    """Ours."""
    model = BertForPreTraining.from_pretrained(folder)
    batches = [
        batch_from_tensors(load_file(path), PreTrainingBatch, model.config, path) for path in paths
    ]

    def loss_of(number: int) -> Tensor:
        losses, counts = score(model, batches[number]).losses, batches[number].target_counts
        return torch.stack([losses[name] / count for name, count in counts.items()]).sum()

    return model, [partial(loss_of, number) for number in range(len(paths))]


def build_transformers(folder: Path, paths: list[Path]) -> tuple[nn.Module, Losses]:
    """Theirs, with SDPA attention."""
    from transformers import BertForPreTraining as TheirModel
    from transformers import logging

    logging.set_verbosity_error()
    model = TheirModel.from_pretrained(folder, attn_implementation="sdpa")

    def loss_of(batch: dict[str, Tensor]) -> Tensor:
        loss: Tensor = model(**batch).loss
        return loss

    return model, [partial(loss_of, load_file(path)) for path in paths]


def build_compiled(folder: Path, paths: list[Path]) -> tuple[nn.Module, Losses]:
    """Theirs under `torch.compile`."""
    model, losses = build_transformers(folder, paths)
    model.compile()
    return model, losses


SIDES = {
    "bertkit": build_bertkit,
    "transformers": build_transformers,
    "kept": build_transformers,
    "compiled": build_compiled,
}

if __name__ == "__main__":
    main()
