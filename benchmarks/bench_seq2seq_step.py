"""Speed of learning to translate beside transformers' `EncoderDecoderModel`.

    python benchmarks/bench_seq2seq_step.py --steps 12
    python benchmarks/bench_seq2seq_step.py --steps 12 --device cuda

German → English captions, cut by one vocabulary; a new model of `bertkit finetune translate`'s
sizes, loaded by both sides from one folder, in float32 on a CPU and under autocast to bf16 on a
GPU, with its dropout, AdamW and clipping. Whole steps are measured, from token ids to new weights,
each side in a process of its own, in turns, another side first each time:

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
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.decoders.seq2seq.examples import PairData, PairFiles
from bertkit.decoders.seq2seq.run import begin
from bertkit.decoders.seq2seq.settings import TranslateSettings
from devices import Place
from program import DATA, build_parser, write_figures
from sides import Sides, compare_speeds, describe_speed
from turns import begin_table

SIDES = ("bertkit", "transformers", "kept")
NUM_UNCOUNTED = 2
COLUMNS = ("side", "a step", "tokens/s", "padding", "ratio", "of processor time", "memory")


def main() -> None:
    parser = build_parser(__doc__, "seq2seq_step.json", data=DATA / "parallel" / "multi30k")
    parser.add_argument("--languages", nargs=2, default=["de", "en"])
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--size", help="as of bertkit finetune translate")
    parser.add_argument("--steps", type=int, default=12)
    Place.add_flags(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, arguments.precision)
    with tempfile.TemporaryDirectory() as folder:
        prepare(arguments, Path(folder))
        result = compare(arguments, place, Path(folder))
    print(begin_table(*COLUMNS))
    for name, row in result["sides"].items():
        print(describe_speed(row, "tokens", name, result["batches"][name]))
    write_figures(arguments.output, place.describe(), result=result)


def prepare(arguments: argparse.Namespace, folder: Path) -> None:
    """Write the model and the pairs that all sides read."""
    settings = TranslateSettings(size=arguments.size)
    files = tuple(arguments.data / f"train.{language}.gz" for language in arguments.languages)
    data = PairData(PairFiles(files), settings)
    beginning = begin(data, settings)
    pairs = data.train.encode(beginning.tokenizer, settings, leaves_out=True)
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
    # begun one after the other, so that each tries its batch sizes alone
    with Sides("seq2seq_side.py", names, folder, *place.words, one_by_one=True) as sides:
        losses = sides.losses("translation", place)
        rounds = sides.take_turns(range(arguments.steps + NUM_UNCOUNTED), NUM_UNCOUNTED)
    batches = {name: told["batch"] for name, told in sides.told.items()}
    compared = compare_speeds(rounds, "tokens")
    return {"losses": losses, "batches": batches, "sides": compared, "rounds": rounds}


if __name__ == "__main__":
    main()
