"""Speed of fine-tuning beside transformers' `Trainer`.

    python benchmarks/bench_finetune.py --sets sst2 squad --rounds 5
    python benchmarks/bench_finetune.py --sets sst2 squad --rounds 5 --device cuda --steps 100

all-MiniLM-L6-v2 on SST-2 (sentences) and a sample of SQuAD (questions and paragraphs, in windows of
up to 384 tokens), 32 examples a step, float32 (on a GPU mixed with bf16), dropout 0.1, AdamW,
clipping. Whole programs run, each in a process of its own, in turns, an epoch a round and another
side first each time: bertkit's loop with its log, and the `Trainer` with dynamic padding, SDPA
attention and fused AdamW,

- `transformers`: on the same batches as bertkit, in random order;
- `kept`: the same with freed memory kept as bertkit keeps it (`training/device.py`), not on a
  GPU;
- `grouped`: with its own batches of similar length (`train_sampling_strategy="group_by_length"`).

Token ids are compared first, and the loss of the first batch without dropout. Speed is in sequences
of average length a second: tokens per second, without padding, divided by the tokens of the set's
average sequence. Beside the ratio stands that of processor time, which other programs on the
machine hardly change.
"""

import argparse
import json
import statistics
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from bertkit.data.order import EpochOrder
from bertkit.recipes.finetune.settings import FineTuneSettings
from devices import Place
from finetune_peers import Feature, build_peer_task, load_peer_model
from finetune_side import open_job
from minilm import find_minilm
from program import be_quiet, build_parser, write_figures
from sides import Sides, compare_speeds, describe_speed
from task_sets import TaskSet, prepare_set, read_part
from turns import begin_table

BATCH_SIZE = 32
NUM_EPOCHS = 40  # of batches that are written; more than any run takes
SIDES = ("bertkit", "transformers", "kept", "grouped")
SIDES_ON_GPU = ("bertkit", "transformers", "grouped")
COLUMNS = ("set", "side", "sequences/s", "padding", "ratio", "of processor time", "memory")


def main() -> None:
    parser = build_parser(__doc__, "finetune.json", rounds=5)
    parser.add_argument("--sets", nargs="+", default=["sst2", "squad"])
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--steps", type=int, help="of a round, instead of an epoch")
    Place.add_flags(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, arguments.precision)
    be_quiet()
    print(begin_table(*COLUMNS), flush=True)
    results: list[dict[str, Any]] = []
    for name in arguments.sets:
        with tempfile.TemporaryDirectory() as folder:
            results.append(compare(name, arguments, place, Path(folder)))
        for side, row in results[-1]["sides"].items():
            print(describe_speed(row, "sequences", name, side), flush=True)
        write_figures(arguments.output, place.describe(), results=results)


def compare(name: str, arguments: argparse.Namespace, place: Place, folder: Path) -> dict[str, Any]:
    """Let the sides take turns on a set; the first round doesn't count."""
    task_set = prepare_set(arguments.data, name, folder)
    lengths, batches = write_sides(task_set, folder)
    steps = arguments.steps or len(batches) // NUM_EPOCHS
    chosen = arguments.sides or (SIDES_ON_GPU if place.is_gpu else SIDES)
    names = list(dict.fromkeys(["bertkit", *chosen]))
    words = [name, arguments.data, folder, *place.words]
    with Sides("finetune_side.py", names, *words) as sides:
        losses = sides.losses(name, place)
        rounds = sides.take_turns([steps] * (arguments.rounds + 1))
    average = statistics.mean(lengths)
    return {
        "set": name,
        "steps": steps,
        "losses": losses,
        "tokens_per_sequence": average,
        "sides": compare_speeds(rounds, "sequences", average),
        "rounds": rounds,
    }


def write_sides(task_set: TaskSet, folder: Path) -> tuple[list[int], list[list[int]]]:
    """Write weights and batches; the lengths of all sequences, and the batches."""
    task = build_peer_task(task_set, find_minilm())
    torch.manual_seed(0)
    load_peer_model(task, find_minilm()).save_pretrained(folder / "model")
    task.tokenizer.save_pretrained(folder / "model")
    features = task.build_features(read_part(task_set, "train"))
    owners = compare_ids(task_set, folder, features)
    order = EpochOrder(1 + owners[-1], BATCH_SIZE, 0)
    sequences_of: list[list[int]] = [[] for _ in range(1 + owners[-1])]
    for number, owner in enumerate(owners):
        sequences_of[owner].append(number)
    batches = [
        [number for example in order.examples(step).tolist() for number in sequences_of[example]]
        for step in range(NUM_EPOCHS * order.steps_per_epoch)
    ]
    (folder / "batches.json").write_text(json.dumps(batches))
    return [len(feature["input_ids"]) for feature in features], batches


def compare_ids(task_set: TaskSet, folder: Path, features: list[Feature]) -> list[int]:
    """The example of each sequence, when bertkit and transformers agree on all token ids."""
    encoded = open_job(task_set, folder / "model", FineTuneSettings(device="cpu")).train
    ours = [list(sequence.ids) for one in encoded for sequence in one.sequences]
    theirs = [feature["input_ids"] for feature in features]
    if ours != theirs:
        raise SystemExit(
            f"{task_set.name}: the sides have other token ids (tokenizers {version('tokenizers')};"
            " 0.23.2 loses the end of a text in windows, which transformers then doesn't see)"
        )
    return [owner for owner, one in enumerate(encoded) for _ in one.sequences]


if __name__ == "__main__":
    main()
