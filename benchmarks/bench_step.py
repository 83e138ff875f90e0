"""Time of a pre-training step beside transformers, on the batches that `pretrain` builds.

    python benchmarks/bench_step.py --data shards/ --models tiny mini

Forward, backward and AdamW in float32 with dropout 0.1, the same token ids and targets on both
sides, interleaved, medians. transformers gets its padded batch, SDPA attention and fused AdamW, and
projects every position on the vocabulary, as its `BertForPreTraining` does. Before timing, both
losses are compared without dropout on one batch for the same weights. Without `--data` the text
is Python's own documentation.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertForPreTraining as TheirModel
from transformers import logging as their_logging

from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.packing import length_mask
from bertkit.objectives.bert import PreTrainingBatch, count_operations, score
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.prepare.settings import PrepareSettings
from bertkit.recipes.pretrain.job import build_objective
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.train_tokenizer.run import train_tokenizer
from bertkit.recipes.train_tokenizer.settings import TrainTokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import measure_peak

BATCH_SIZE = 32
CPU = torch.device("cpu")


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["tiny", "mini"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/step.json"))
    arguments = parser.parse_args()
    their_logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or prepare_documentation(Path(folder))
        batches = read_batches(data, arguments.rounds)
    results = [compare(name, batches) for name in arguments.models]
    machine = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    machine |= {"python": platform.python_version(), "peak_gflops": measure_peak(CPU, "fp32") / 1e9}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    for row in results:
        print(
            f"{row['model']:>6}: bertkit {row['ours']:,.0f} tokens/s, transformers"
            f" {row['theirs']:,.0f}: {row['ratio']:.2f} × ({row['ratio_low']:.2f}"
            f"–{row['ratio_high']:.2f}); padding {row['padding']:.0%},"
            f" {row['operations'] / machine['peak_gflops'] / 1e9:.0%} of the matrix-product peak"
        )


def read_batches(data: Path, count: int) -> list[PreTrainingBatch]:
    """The first batches of a run on shards."""
    shards, tokenizer = ShardSet.open(data), Tokenizer.load(data / "tokenizer")
    objective = build_objective(shards.train, shards, tokenizer, PretrainSettings())
    order = ExampleOrder([shard.num_tokens for shard in shards.train], objective.plan, seed=0)
    return [
        objective.batch(order.examples(number * BATCH_SIZE, BATCH_SIZE)) for number in range(count)
    ]


def prepare_documentation(folder: Path) -> Path:
    """Shards of Python's own documentation with a vocabulary of the published size."""
    settings = TrainTokenizerSettings(vocab_size=30_522, min_frequency=1)
    train_tokenizer(["python-docs:"], folder / "tokenizer", settings)
    prepare(["python-docs:"], folder / "tokenizer", folder / "shards", PrepareSettings())
    return folder / "shards"


def compare(name: str, batches: list[PreTrainingBatch]) -> dict[str, Any]:
    """Time both, a batch each in turn, after one batch that doesn't count."""
    torch.manual_seed(0)
    ours = BertForPreTraining(BertConfig.preset(name))
    with tempfile.TemporaryDirectory() as folder:
        ours.save_pretrained(folder)
        theirs = TheirModel.from_pretrained(folder, attn_implementation="sdpa")
    padded = [pad_batch(batch) for batch in batches]
    torch.testing.assert_close(
        our_loss_of(ours.eval(), batches[0]), theirs.eval()(**padded[0]).loss, rtol=1e-4, atol=1e-4
    )
    steps: dict[str, Callable[[int], Tensor]] = {
        "ours": lambda number: our_loss_of(ours, batches[number]),
        "theirs": lambda number: theirs(**padded[number]).loss,
    }
    models: dict[str, nn.Module] = {"ours": ours.train(), "theirs": theirs.train()}
    optimizers = {
        side: torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        for side, model in models.items()
    }
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for number in range(len(batches)):
        for side, step in steps.items():
            started = time.perf_counter()
            optimizers[side].zero_grad()
            step(number).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(models[side].parameters(), 1.0)
            optimizers[side].step()
            seconds[side].append(time.perf_counter() - started)
    return summarise(name, batches, seconds)


def our_loss_of(model: BertForPreTraining, batch: PreTrainingBatch) -> Tensor:
    """The loss of a training step."""
    scores = score(model, batch)
    return torch.stack(
        [scores.losses[name] / count for name, count in batch.target_counts.items()]
    ).sum()


def pad_batch(batch: PreTrainingBatch) -> dict[str, Tensor]:
    """The same batch as transformers takes it."""
    mask = length_mask(batch.packed.lengths, CPU)
    labels = torch.full((batch.num_tokens,), -100)
    labels[batch.positions] = batch.labels
    flat = {
        "input_ids": batch.packed.input_ids,
        "token_type_ids": batch.packed.token_type_ids,
        "labels": labels,
    }
    padded = {name: torch.zeros(mask.shape, dtype=torch.int64) for name in flat}
    padded["labels"] -= 100
    for name, values in flat.items():
        padded[name][mask] = values
    return {
        **padded,
        "attention_mask": mask.long(),
        "next_sentence_label": batch.next_sentence_labels,
    }


def summarise(
    name: str, batches: list[PreTrainingBatch], seconds: dict[str, list[float]]
) -> dict[str, Any]:
    """Medians over all batches but the first."""
    timed = batches[1:]
    speeds = {
        side: [batch.num_tokens / s for batch, s in zip(timed, values[1:], strict=True)]
        for side, values in seconds.items()
    }
    ratios = [ours / theirs for ours, theirs in zip(speeds["ours"], speeds["theirs"], strict=True)]
    config = BertConfig.preset(name)
    operations = [
        count_operations(config, batch) / s
        for batch, s in zip(timed, seconds["ours"][1:], strict=True)
    ]
    longest = [max(batch.packed.lengths) * len(batch.packed.lengths) for batch in timed]
    return {
        "model": name,
        "ours": statistics.median(speeds["ours"]),
        "theirs": statistics.median(speeds["theirs"]),
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "operations": statistics.median(operations),
        "padding": 1 - sum(batch.num_tokens for batch in timed) / sum(longest),
    }


if __name__ == "__main__":
    main()
