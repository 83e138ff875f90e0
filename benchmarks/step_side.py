"""One side of `bench_step.py`: a model in a process of its own, which takes a step when told to.

    python benchmarks/step_side.py {bertkit,transformers,kept,compiled} FOLDER DEVICE PRECISION

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
from bertkit.tasks.objectives.bert import PreTrainingBatch, score
from bertkit.tasks.objectives.objective import batch_from_tensors
from bertkit.training.device import prepare_memory
from devices import Place

Losses = list[Callable[[], Tensor]]


def main() -> None:
    """Build the side, tell the loss of batch 0 without dropout, then obey."""
    side, folder, device, precision = sys.argv[1:]
    place = Place.of(device, "bf16" if precision == "bf16" else "fp32")
    if side in ("bertkit", "kept"):
        prepare_memory(torch.device("cpu"))  # as `bertkit pretrain` does
    prefix = "bertkit" if side == "bertkit" else "transformers"
    paths = sorted(Path(folder).glob(f"{prefix}-*"))
    model, losses = SIDES[side](Path(folder) / "model", paths, place)
    with torch.no_grad(), place.mixed_precision():
        model.eval()
        print(json.dumps({"loss": float(losses[0]())}), flush=True)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    place.count_memory_anew()
    for line in sys.stdin:
        place.synchronize()
        started = time.perf_counter()
        optimizer.zero_grad()
        with place.mixed_precision():
            loss = losses[int(line)]()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        place.synchronize()
        seconds, peak = time.perf_counter() - started, place.peak_memory_bytes()
        print(json.dumps({"seconds": seconds, "peak_memory_bytes": peak}), flush=True)


def build_bertkit(folder: Path, paths: list[Path], place: Place) -> tuple[nn.Module, Losses]:
    """Ours; a step begins with moving its batch to the device."""
    model = BertForPreTraining.from_pretrained(folder).to(place.device)
    batches = [
        batch_from_tensors(load_file(path), PreTrainingBatch, model.config, path) for path in paths
    ]

    def loss_of(number: int) -> Tensor:
        batch = batches[number]
        losses, counts = score(model, batch.to(place.device)).losses, batch.target_counts
        return torch.stack([losses[name] / count for name, count in counts.items()]).sum()

    return model, [partial(loss_of, number) for number in range(len(paths))]


def build_transformers(folder: Path, paths: list[Path], place: Place) -> tuple[nn.Module, Losses]:
    """Theirs, with SDPA attention."""
    from transformers import BertForPreTraining as TheirModel
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = TheirModel.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    model.to(place.device)

    def loss_of(batch: dict[str, Tensor]) -> Tensor:
        moved = {name: each.to(place.device, non_blocking=True) for name, each in batch.items()}
        loss: Tensor = model(**moved).loss
        return loss

    return model, [partial(loss_of, load_file(path)) for path in paths]


def build_compiled(folder: Path, paths: list[Path], place: Place) -> tuple[nn.Module, Losses]:
    """Theirs under `torch.compile`."""
    model, losses = build_transformers(folder, paths, place)
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
