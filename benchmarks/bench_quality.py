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
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.recipes.pretrain.new_model import build_config
from pretraining_sides import SIDES, prepare_documentation
from program import build_parser, write_figures
from quality_side import build_settings
from sides import Sides
from turns import format_row


def main() -> None:
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
        turn = 60.0 * arguments.minutes / arguments.turns
        with Sides("quality_side.py", SIDES, *words) as sides:
            curves = sides.take_turns(
                [0.0, *[turn] * arguments.turns],
                0,
                when_answered=lambda name, row: print(describe(name, row), flush=True),
            )
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


def describe(name: str, row: dict[str, Any]) -> str:
    cells = [name, f"{row['seconds']:,.0f} s", f"{row['steps']:,}", f"{row['tokens']:,}"]
    for test in ("held_out", "foreign"):
        values = row[test]
        cells += [f"{values['mlm_loss']:.3f}", f"{values['mlm_accuracy']:.1%}"]
        cells += [f"{values['nsp_accuracy']:.1%}"]
    return format_row(*cells)


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
    if found is None:
        return "bertkit doesn't come down to the other's final held-out loss"
    return (
        f"bertkit has the other's final held-out loss after {found['seconds']:,.0f} s,"
        f" {found['ratio']:.2f} times as soon"
    )


if __name__ == "__main__":
    main()
