"""Search peak learning rate and batch size: a 3 × 3 grid of short runs on the same tokens.

    python benchmarks/grid.py --data shards/ --model mini --tokens 1000000 \
        --learning-rates 5e-4 1e-3 2e-3 --batch-sizes 16 32 64 --output grid-mini.json

Every run sees as many tokens as the others; what differs is how many steps that is. The result is
written after each run, and runs that it holds already are not done again; a file with another
model's, budget's or corpus's grid is refused.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch

from bertkit.data.shards import ShardSet
from bertkit.recipes.pretrain.run import pretrain
from bertkit.recipes.pretrain.settings import RECIPES, PretrainSettings

NEVER = 1 << 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--recipe", choices=RECIPES, default="paper")
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--learning-rates", type=float, nargs="+", required=True)
    parser.add_argument("--batch-sizes", type=int, nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    task = {"model": arguments.model, "recipe": arguments.recipe, "tokens": arguments.tokens}
    task["data"] = ShardSet.open(arguments.data).fingerprint
    if any(row.items() & task.items() != task.items() for row in results):
        parser.error(f"{arguments.output} holds another grid; name another --output")
    done = {(row["learning_rate"], row["batch_size"]) for row in results}
    for batch_size in arguments.batch_sizes:
        for learning_rate in arguments.learning_rates:
            if (learning_rate, batch_size) in done:
                continue
            results.append(task | run_point(arguments, learning_rate, batch_size))
            arguments.output.write_text(json.dumps(results, indent=1))
    print_table(results, arguments.learning_rates, arguments.batch_sizes)


def run_point(
    arguments: argparse.Namespace, learning_rate: float, batch_size: int
) -> dict[str, float]:
    settings = PretrainSettings(
        size=arguments.model,
        recipe=arguments.recipe,
        objective=RECIPES[arguments.recipe]["objective"],
        device="cpu",
        precision="fp32",
        tokens=arguments.tokens,
        learning_rate=learning_rate,
        batch_size=batch_size,
        eval_every=NEVER,
        checkpoint_every=NEVER,
    )
    with tempfile.TemporaryDirectory() as folder:
        result = pretrain(arguments.data, Path(folder) / "run", settings)
    return {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "num_steps": result.num_steps,
        **result.metrics,
    }


def print_table(
    results: list[dict[str, float]], learning_rates: list[float], batch_sizes: list[int]
) -> None:
    losses = {(row["batch_size"], row["learning_rate"]): row["loss"] for row in results}
    print("batch \\ rate" + "".join(f"{rate:>10g}" for rate in learning_rates))
    for batch_size in batch_sizes:
        row = "".join(f"{losses[batch_size, rate]:>10.3f}" for rate in learning_rates)
        print(f"{batch_size:>12}{row}")


if __name__ == "__main__":
    main()
