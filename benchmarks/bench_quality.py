"""Pre-training for an equal time beside transformers: held-out loss and accuracies over time.

    python benchmarks/bench_quality.py --data shards/ --foreign foreign-shards/ --minutes 30

Both sides begin with the same weights and see the same examples in the same order with the same
masks, optimizer, batch size and peak learning rate, by the paper's recipe in float32; the rate
rises and falls with the share of the time that is spent. Each side is a process with a clock of its
own, and they take turns of a minute or two, so that what else the machine does meets both.
Evaluations aren't counted.

Without `--data` the text is Python's own documentation, and the foreign text its held-out part.
"""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from bench_step import prepare_documentation
from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.recipes.pretrain.job import build_config
from program import ask, build_parser, start_side, write_figures
from quality_side import build_settings
from turns import order_turn

SIDES = ("bertkit", "transformers")


def main() -> None:
    """Print two tables, and write the curves as JSON."""
    parser = build_parser(__doc__, "quality.json", data=None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--foreign", type=Path)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--minutes", type=float, default=2.0, help="of each side")
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = arguments.data or prepare_documentation(folder)
        foreign = arguments.foreign or data
        write_initial_weights(data, arguments.model, folder / "model")
        words = [arguments.model, arguments.minutes, folder / "model", data, foreign]
        curves = run_sides(words, arguments.minutes, arguments.turns)
    found = sooner(curves)
    result = {"model": arguments.model, "minutes": arguments.minutes, "curves": curves}
    write_figures(arguments.output, **result, sooner=found)
    print(describe_sooner(found))


def write_initial_weights(data: Path, model: str, folder: Path) -> None:
    """The weights that both sides begin with."""
    settings = build_settings(model)
    torch.manual_seed(settings.seed)
    config = build_config(settings, ShardSet.open(data).load_tokenizer())
    BertForPreTraining(config).save_pretrained(folder)


def run_sides(
    words: Sequence[object], minutes: float, turns: int
) -> dict[str, list[dict[str, Any]]]:
    """Let the sides take turns, and gather what they answer."""
    sides = {name: start_side("quality_side.py", name, *words) for name in SIDES}
    curves: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
    for turn in range(turns + 1):
        for name in order_turn(SIDES, turn):
            curves[name].append(ask(sides[name], 60.0 * minutes / turns if turn else 0.0))
            print(describe(name, curves[name][-1]), flush=True)
    for side in sides.values():
        side.communicate()
    return curves


def describe(name: str, row: dict[str, Any]) -> str:
    """A line of a Markdown table."""
    cells = [name, f"{row['seconds']:,.0f} s", f"{row['steps']:,}", f"{row['tokens']:,}"]
    for test in ("held_out", "foreign"):
        values = row[test]
        cells += [f"{values['mlm_loss']:.3f}", f"{values['mlm_accuracy']:.1%}"]
        cells += [f"{values['nsp_accuracy']:.1%}"]
    return f"| {' | '.join(cells)} |"


def sooner(curves: dict[str, list[dict[str, Any]]]) -> dict[str, float] | None:
    """When our held-out loss is first as low as the peer's last, between two evaluations."""
    last = curves["transformers"][-1]
    goal = last["held_out"]["loss"]
    points = [(row["seconds"], row["held_out"]["loss"]) for row in curves["bertkit"]]
    for (start, above), (stop, below) in pairwise(points):
        if below <= goal < above:
            seconds = start + (stop - start) * (above - goal) / (above - below)
            return {"seconds": seconds, "ratio": last["seconds"] / seconds}
    return None


def describe_sooner(found: dict[str, float] | None) -> str:
    """The same in words."""
    if found is None:
        return "bertkit doesn't come down to the other's final held-out loss"
    return (
        f"bertkit has the other's final held-out loss after {found['seconds']:,.0f} s,"
        f" {found['ratio']:.2f} times as soon"
    )


if __name__ == "__main__":
    main()
