"""Speed of learning to translate beside transformers' `EncoderDecoderModel`.

    python benchmarks/bench_seq2seq_step.py --steps 12
    python benchmarks/bench_seq2seq_step.py --steps 12 --device cuda

German → English captions, cut by one vocabulary; a new model of `bertkit finetune translate`'s
sizes, loaded by both sides from one folder, in float32 on a CPU and under autocast to bf16 on a
GPU, with its dropout, AdamW and clipping. Whole
steps are measured, from token ids to new weights, each side in a process of its own, in turns,
another side first each time:

- `bertkit`: 4,096 tokens a step, packed, in random order;
- `transformers`: batches of similar length, padded to their longest, SDPA attention, of the batch
  size among 32, 64, 128 and 256 pairs that is fastest;
- `kept`: the same with freed memory kept as bertkit keeps it; not on a GPU.

On a GPU it is 32,768 tokens a step, and 128 to 1,024 pairs. The loss of the same pairs without
dropout is compared first. Speed is in tokens per second, without padding, of both languages
together. Beside the ratio stands that of processor time, which other programs on the machine
hardly change.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench_finetune import compare_speeds, find_speeds
from bertkit.recipes.seq2seq.examples import encode_training, read_data
from bertkit.recipes.seq2seq.run import begin
from bertkit.recipes.seq2seq.settings import TranslateSettings
from devices import Place, show_memory
from program import DATA, ask, build_parser, start_side, write_figures
from turns import begin_table, order_turn, show_ratio

SIDES = ("bertkit", "transformers", "kept")
NUM_UNCOUNTED = 2
COLUMNS = ("side", "a step", "tokens/s", "padding", "ratio", "of processor time", "memory")


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = build_parser(__doc__, "seq2seq_step.json", data=DATA / "parallel" / "multi30k")
    parser.add_argument("--languages", nargs=2, default=["de", "en"])
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--hidden-size", type=int)
    parser.add_argument("--attention-dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=12)
    Place.add_flags(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, arguments.precision)
    with tempfile.TemporaryDirectory() as folder:
        prepare(arguments, Path(folder))
        result = compare(arguments, place, Path(folder))
    print("\n".join([begin_table(*COLUMNS), *describe(result)]))
    write_figures(arguments.output, place.describe(), result=result)


def prepare(arguments: argparse.Namespace, folder: Path) -> None:
    """Write the model and the pairs that all sides read."""
    settings = TranslateSettings(
        layers=arguments.layers,
        hidden_size=arguments.hidden_size,
        attention_dropout=arguments.attention_dropout,
    )
    files = tuple(arguments.data / f"train.{language}.gz" for language in arguments.languages)
    data = read_data(files, None, settings)
    beginning = begin(data, settings)
    pairs, _ = encode_training(data.train, beginning.tokenizer, settings)
    (folder / "model").mkdir()
    beginning.model.save_pretrained(folder / "model")
    sides = {"s": pairs.sources, "t": pairs.targets}
    arrays: dict[str, Any] = {f"{name}_ids": side.ids for name, side in sides.items()}
    arrays |= {f"{name}_offsets": side.offsets for name, side in sides.items()}
    np.savez(folder / "pairs.npz", **arrays)


def compare(arguments: argparse.Namespace, place: Place, folder: Path) -> dict[str, Any]:
    """Let the sides take turns, a step each; the first rounds don't count."""
    chosen = arguments.sides or (SIDES[:2] if place.is_gpu else SIDES)
    names = list(dict.fromkeys(["bertkit", *chosen]))
    sides, told = {}, {}
    for name in names:  # one after the other, so that each tries its batch sizes alone
        sides[name] = start_side("seq2seq_side.py", name, folder, *place.words)
        told[name] = ask(sides[name])
    losses = {name: each["loss"] for name, each in told.items()}
    place.check_losses("translation", losses)
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number in range(arguments.steps + NUM_UNCOUNTED):
        for name in order_turn(names, number):
            rounds[name].append(ask(sides[name], number))
    for process in sides.values():
        process.communicate()
    counted = {name: each[NUM_UNCOUNTED:] for name, each in rounds.items()}
    batches = {name: each["batch"] for name, each in told.items()}
    return {"losses": losses, "batches": batches, **summarize(counted)}


def summarize(rounds: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians of speeds, and of ratios round by round with the least and the greatest."""
    sides = {
        name: {
            "tokens_per_second": statistics.median(find_speeds(answers, "seconds")),
            "padding": 1
            - sum(each["tokens"] for each in answers) / sum(each["places"] for each in answers),
            "ratio": compare_speeds(rounds["bertkit"], answers, "seconds"),
            "cpu_ratio": compare_speeds(rounds["bertkit"], answers, "cpu_seconds"),
            "peak_memory_bytes": answers[-1]["peak_memory_bytes"],
        }
        for name, answers in rounds.items()
    }
    return {"sides": sides, "rounds": rounds}


def describe(result: dict[str, Any]) -> list[str]:
    """A result as lines of a Markdown table."""
    return [
        f"| {name} | {result['batches'][name]} | {row['tokens_per_second']:,.0f} |"
        f" {row['padding']:.0%} | {show_ratio(row['ratio'])} | {show_ratio(row['cpu_ratio'])} |"
        f" {show_memory(row['peak_memory_bytes'])} |"
        for name, row in result["sides"].items()
    ]


if __name__ == "__main__":
    main()
