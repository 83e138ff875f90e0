"""What bf16 costs and gives in pre-training: held-out loss and time of the same run in both.

    python benchmarks/bench_training_precision.py --data shards/ --steps 2000 --seeds 0 1 2

Each seed is two runs of the recipe `modern`, alike but for the precision, from the same weights
over the same examples and masks. Runs stay in `--runs`, so an interrupted benchmark continues.

`--simulate` is for processors without instructions for bf16, which take 30 times as long to emulate
its products: operands and results of each product are rounded to bf16, and sums are made in
float32, as the instructions do. Losses mean what they do on a processor that has them; times mean
nothing.

Without `--data` the text is Python's own documentation.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bertkit.recipes.pretrain.run import pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from pretraining_sides import prepare_documentation
from program import build_parser, write_figures
from turns import begin_table, format_row

PRECISIONS = ("fp32", "bf16")
aten = torch.ops.aten
PRODUCTS = (
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.baddbmm.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,  # noqa: SLF001
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,  # noqa: SLF001
)


class SimulatedProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes products of bf16 matrices in float32, and rounds the results to bf16."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operation, widened if it is a product of bf16 tensors."""
        kwargs = kwargs or {}
        if func not in PRODUCTS or not any(map(is_bf16, args)):
            return func(*args, **kwargs)
        wide = {name: widen(value) for name, value in kwargs.items()}
        result = func(*map(widen, args), **wide)
        if isinstance(result, Tensor):
            return result.bfloat16()
        # of attention: sums of weights have three dimensions, and stay float32
        return tuple(each.bfloat16() if each.ndim == 4 else each for each in result)


def is_bf16(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.bfloat16


def widen(value: Any) -> Any:
    """Return a tensor of bf16 in float32, and anything else as it is."""
    return value.float() if is_bf16(value) else value


def main() -> None:
    parser = build_parser(__doc__, "training_precision.json", data=None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--batch-size", type=int, help="by default that of the recipe")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--runs", type=Path, help="folder of the runs; by default a temporary one")
    arguments = parser.parse_args()
    print(begin_table("seed", "loss, fp32", "loss, bf16", "difference", "times as fast"))
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data or prepare_documentation(Path(temporary))
        runs = arguments.runs or Path(temporary) / "runs"
        rows = [compare(arguments, data, runs, seed) for seed in arguments.seeds]
    differences = [row["difference"] for row in rows]
    print(f"median difference {statistics.median(differences):+.2%}")
    chosen = {
        name: getattr(arguments, name) for name in ("model", "steps", "batch_size", "max_length")
    }
    write_figures(arguments.output, **chosen, is_simulated=arguments.simulate, results=rows)


def compare(arguments: argparse.Namespace, data: Path, runs: Path, seed: int) -> dict[str, Any]:
    """Train one seed in both precisions, and print a row of the table."""
    losses, seconds = {}, {}
    for precision in PRECISIONS:
        settings = PretrainSettings(
            size=arguments.model,
            recipe="modern",
            objective="mlm",
            precision=precision,
            steps=arguments.steps,
            seed=seed,
            max_length=arguments.max_length,
            device="cpu",
            **({} if arguments.batch_size is None else {"batch_size": arguments.batch_size}),
        )
        is_simulated = precision == "bf16" and arguments.simulate
        simulation = SimulatedProducts() if is_simulated else nullcontext()  # type: ignore[no-untyped-call]
        with simulation:
            result = pretrain(data, runs / f"{precision}-{seed}", settings)
        losses[precision] = result.metrics["loss"]
        seconds[precision] = result.elapsed_seconds
    difference = losses["bf16"] / losses["fp32"] - 1.0
    ratio = None if arguments.simulate else seconds["fp32"] / seconds["bf16"]
    cells = [str(seed), *(f"{losses[precision]:.4f}" for precision in PRECISIONS)]
    cells += [f"{difference:+.2%}", "simulated" if ratio is None else f"{ratio:.2f}"]
    print(format_row(*cells), flush=True)
    return {"seed": seed, "loss": losses, "difference": difference, "speed": ratio}


if __name__ == "__main__":
    main()
