"""How fast a machine pre-trains, and where the time of a step goes.

    python benchmarks/bench_pretrain.py --data shards/ --models base --lengths 128 512
    torchrun --nproc-per-node 8 benchmarks/bench_pretrain.py --models base --batch-size 256

For each model and length: tokens per second without padding (the median of the steps, and the
quartiles), operations as a share of the fastest matrix product on this machine, the peak of memory
(of a GPU at this length; on a CPU of the process so far), and the parts of a step's time: making
batches, the forward pass, the backward pass with gradients and their norm, and the update. The
gradient of the word scores is computed with them, in the forward pass; under torchrun,
communication counts as the backward pass.

Without `--data` the text is Python's own documentation.
"""

import copy
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

from bertkit.base.settings import validate
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.budget import drop_warm_up, measure_steps, peak_memory_bytes
from bertkit.training.device import synchronize
from bertkit.training.job import Job, Machine
from bertkit.training.ranks import joined_ranks
from bertkit.training.replica import Replica
from pretraining_sides import prepare_documentation
from program import build_parser, write_figures
from turns import begin_table, format_row

LEAST_STEPS = 7  # of which four count
BATCHES, FORWARD, OPTIMIZER = "batches", "forward", "optimizer"
COLUMNS = ("model", "length", "tokens/s", "half of the steps", "of the peak", "memory")
PARTS = ("batches", "forward", "backward", "optimizer")


def main() -> None:
    parser = build_parser(__doc__, "pretrain.json", data=None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["mini"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--recipe", default="modern")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--accumulate", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    names = ("recipe", "batch_size", "accumulate", "device", "precision")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    rows = []
    with tempfile.TemporaryDirectory() as folder, joined_ranks() as ranks:
        data = arguments.data or prepare_documentation(Path(folder))
        if ranks.is_first:
            print(begin_table(*COLUMNS, *PARTS), flush=True)
        for model in arguments.models:
            for length in arguments.lengths:
                row = measure(data, {**given, "size": model, "max_length": length})
                rows.append(row)
                if ranks.is_first:
                    print(format_row(*show(row)), flush=True)
    if ranks.is_first:
        write_figures(arguments.output, processes=ranks.count, rows=rows)


def measure(data: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Measure steps twice: as fast as they are, and then with a clock at their parts."""
    settings = validate(PretrainSettings, values, "the flags")
    recipe = Pretraining(data, settings)
    recipe.open_data()
    machine = Machine.choose(settings, recipe.find_hidden_size)
    if machine.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(machine.device)
    job = recipe.open(None, machine)
    replica = Replica.build(job)
    counted = drop_warm_up(measure_steps(job, replica, least=LEAST_STEPS))
    memory_bytes = peak_memory_bytes(machine.device)
    rates = [step.num_tokens / step.seconds for step in counted]
    first, _, third = quantiles(rates, method="inclusive")
    operations = median(step.num_operations / step.seconds for step in counted)
    return {
        "model": values["size"],
        "parameters": sum(each.numel() for each in job.model.parameters()),
        "batch_size": settings.batch_size,
        "max_length": settings.max_length,
        "device": machine.device.type,
        "precision": machine.precision,
        "tokens_per_step": median(step.num_tokens for step in counted),
        "tokens_per_second": median(rates),
        "quartiles": [first, third],
        "share_of_peak": machine.share_of_peak(operations / replica.ranks.count),
        "peak_memory_bytes": memory_bytes,
        "parts": measure_parts(job, replica),
    }


def measure_parts(job: Job[Any], replica: Replica[Any]) -> dict[str, float]:
    """Measure how the time of a step divides among its parts; the rest is the backward pass."""
    spent = dict.fromkeys((BATCHES, FORWARD, OPTIMIZER), 0.0)
    counts = [dict(spent)]

    def clock(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            synchronize(job.machine.device)
            began = time.monotonic()
            result = function(*values)
            synchronize(job.machine.device)
            spent[name] += time.monotonic() - began
            return result

        return call

    watched = copy.copy(job)
    watched.collate = clock(BATCHES, job.collate)  # type: ignore[method-assign]
    scoring, optimizer = replica.scoring, replica.optimizer
    scoring.forward = clock(FORWARD, scoring.forward)
    optimizer.step = clock(OPTIMIZER, optimizer.step)  # type: ignore[method-assign]
    steps = measure_steps(watched, replica, after_step=lambda: counts.append(dict(spent)))
    counted = drop_warm_up(steps)
    seconds, before = sum(step.seconds for step in counted), counts[len(steps) - len(counted)]
    batches, forward, update = ((spent[name] - before[name]) / seconds for name in spent)
    backward = 1.0 - batches - forward - update
    return dict(zip(PARTS, (batches, forward, backward, update), strict=True))


def show(row: Mapping[str, Any]) -> list[str]:
    first, third = row["quartiles"]
    peak = row["share_of_peak"]
    return [
        row["model"],
        str(row["max_length"]),
        f"{row['tokens_per_second']:,.0f}",
        f"{first:,.0f} to {third:,.0f}",
        "" if peak is None else f"{peak:.0%}",
        f"{row['peak_memory_bytes'] / 1e9:.2f} GB",
        *(f"{share:.0%}" for share in row["parts"].values()),
    ]


if __name__ == "__main__":
    main()
