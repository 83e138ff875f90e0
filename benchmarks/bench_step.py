"""Time of a pre-training step beside transformers.

    python benchmarks/bench_step.py --data shards/ --models tiny mini base --cases 128 natural 512
    python benchmarks/bench_step.py --device cuda --models base large --cases 128 512

Forward, backward and AdamW with dropout 0.1, of the paper's two objectives, masked words and next
sentence, in float32 on a CPU and under autocast to bf16 on a GPU; the same weights, token ids and
targets on each side; each side in a process of its own, a step in turns; medians. transformers gets
its padded batch, SDPA attention and fused AdamW, projects every position on the vocabulary, as its
`BertForPreTraining` does, and runs as it is, `kept`: with freed memory kept as `bertkit pretrain`
keeps it (`training/device.py`), and `compiled`: under `torch.compile`. Before timing, the losses
without dropout are compared on a batch: the program ends where they differ by more than 1e-4 of
the greater one in float32, or 2e-2 in bf16. The cases:

- `128`, `512`: the batches that `pretrain` builds at that length, 32 or 8 sequences of it;
- `natural`: pairs of neighboring sentences as long as they are, sorted by length, 32 a batch.

On a GPU batches are eight times as large, the peers are `transformers` and `compiled`, and the peak
memory of each side's tensors is told.

Without `--data` the text is Python's own documentation.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.data.order import ExampleKey, ExampleOrder, PlannedExample
from bertkit.data.shards import ShardSet
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.models.bert.weights import without_memory
from bertkit.recipes.pretrain.job import build_objective
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.bert import PreTrainingBatch
from bertkit.training.device import measure_peak
from devices import Place, show_memory
from pretraining_sides import prepare_documentation
from program import Answer, build_parser, write_figures
from saved_batches import write_batches
from sides import Sides
from turns import begin_table, format_row, show_ratio, spread

BATCH_SIZES = {"128": 32, "512": 8, "natural": 32}
TIMES_ON_GPU = 8  # as many sequences
MAX_NATURAL_LENGTH = 128
SIDES = ("bertkit", "transformers", "kept", "compiled")
SIDES_ON_GPU = ("bertkit", "transformers", "compiled")


def main() -> None:
    parser = build_parser(__doc__, "step.json", data=None, rounds=7)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["tiny", "mini"])
    parser.add_argument("--cases", nargs="+", default=["128", "natural"], choices=BATCH_SIZES)
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--batch-size", type=int, help="instead of the case's own")
    Place.add_flags(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, arguments.precision)
    chosen = arguments.sides or (SIDES_ON_GPU if place.is_gpu else SIDES[:3])
    names = list(dict.fromkeys(["bertkit", *chosen]))
    print(begin_table(*list_columns(names)), flush=True)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or prepare_documentation(Path(folder))
        for case in arguments.cases:
            size = arguments.batch_size or BATCH_SIZES[case] * (TIMES_ON_GPU if place.is_gpu else 1)
            batches = build_batches(data, case, size, arguments.rounds + 1)
            for model in arguments.models:
                results.append(compare(model, case, batches, names, place))
                print(describe(results[-1]), flush=True)
                write_figures(arguments.output, place.describe(), results=results)


def build_batches(data: Path, case: str, size: int, count: int) -> list[PreTrainingBatch]:
    """As many batches of a case, of so many sequences each, from the training text."""
    shards = ShardSet.open(data)
    length = MAX_NATURAL_LENGTH if case == "natural" else int(case)
    settings = PretrainSettings(recipe="paper", objective="bert", max_length=length)
    objective = build_objective(shards.train, shards.load_tokenizer(), settings)
    if case == "natural":
        examples = natural_pairs(shards, count * size)
    else:
        order = ExampleOrder([part.num_tokens for part in shards.train], objective.plan, seed=0)
        examples = order.examples(0, count * size)
    batches = [
        objective.batch(examples[start : start + size]) for start in range(0, len(examples), size)
    ]
    np.random.default_rng(0).shuffle(batches)
    return batches


def natural_pairs(shards: ShardSet, count: int) -> list[PlannedExample]:
    """Pairs of neighboring sentences drawn from the first shard, sorted by length."""
    shard = shards.train[0]
    offsets = shard.sentence_offsets.astype(np.int64)
    first = np.arange(len(offsets) - 2)
    first = first[~np.isin(first + 1, shard.document_offsets)]
    lengths = offsets[first + 2] - offsets[first] + 3
    first = first[lengths <= MAX_NATURAL_LENGTH]
    first = np.random.default_rng(0).choice(first, count, replace=False)
    first = first[np.argsort(offsets[first + 2] - offsets[first])]
    rows = np.stack([offsets[first + shift] for shift in (0, 1, 1, 2)] + [first * 0], axis=1)
    return [PlannedExample(ExampleKey(0, 0, index), row) for index, row in enumerate(rows)]


def compare(
    model: str, case: str, batches: list[PreTrainingBatch], names: list[str], place: Place
) -> dict[str, Any]:
    """Take a step on each batch with each side in turn; the first batch doesn't count.

    Each round begins with another side. A compiled side first sees each length once, since a new
    one is compiled anew.
    """
    torch.manual_seed(0)
    config = BertConfig.preset(model)
    peaks: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model").mkdir()
        BertForPreTraining(config).save_pretrained(folder / "model")
        write_batches(folder, batches)
        with Sides("step_side.py", names, folder / "model", folder, *place.words) as sides:
            losses = sides.losses(f"{model}, {case}", place)
            if "compiled" in names:
                for number in first_of_each_length(batches):
                    sides.ask("compiled", number)
            answers = sides.take_turns(
                range(len(batches)),
                before_round=lambda: peaks.append(measure_peak(place.device, place.precision)),
            )
    return {
        "model": model,
        "case": case,
        "sequences": len(batches[0].packed.lengths),
        "losses": losses,
        **summarize(config, batches[1:], answers, peaks[1:]),
    }


def first_of_each_length(batches: list[PreTrainingBatch]) -> list[int]:
    """Numbers of batches whose longest sequence is as long as none before."""
    longest = [max(batch.packed.lengths) for batch in batches]
    return [number for number, length in enumerate(longest) if longest.index(length) == number]


def summarize(
    config: BertConfig,
    batches: list[PreTrainingBatch],
    answers: dict[str, list[Answer]],
    peaks: list[float],
) -> Answer:
    """Medians of speeds, and of ratios step by step with the least and the greatest."""
    speeds = {
        name: [
            batch.num_tokens / each["seconds"] for batch, each in zip(batches, steps, strict=True)
        ]
        for name, steps in answers.items()
    }
    ours = speeds.pop("bertkit")
    with without_memory():
        model = BertForPreTraining(config)
    shares = [
        model.count_operations(batch.packed, len(batch.labels)) / each["seconds"] / peak
        for batch, each, peak in zip(batches, answers["bertkit"], peaks, strict=True)
    ]
    num_places = sum(max(batch.packed.lengths) * len(batch.packed.lengths) for batch in batches)
    return {
        "tokens_per_second": statistics.median(ours),
        "peak_memory_bytes": answers["bertkit"][-1]["peak_memory_bytes"],
        "peers": {
            name: {
                "tokens_per_second": statistics.median(values),
                **spread([one / other for one, other in zip(ours, values, strict=True)], "ratio"),
                "peak_memory_bytes": answers[name][-1]["peak_memory_bytes"],
            }
            for name, values in speeds.items()
        },
        "padding": 1 - sum(batch.num_tokens for batch in batches) / num_places,
        "share_of_peak": statistics.median(shares),
        "peak_gflops": statistics.median(peaks) / 1e9,
        "rounds": len(batches),
    }


def list_columns(names: Sequence[str]) -> list[str]:
    cells = ["model", "case", "sequences", "bertkit, tokens/s", "memory"]
    for name in names:
        cells += [f"{name}, tokens/s", "ratio", "memory"] if name != "bertkit" else []
    return [*cells, "padding", "share of peak"]


def describe(row: dict[str, Any]) -> str:
    cells = [row["model"], row["case"], str(row["sequences"])]
    cells += [f"{row['tokens_per_second']:,.0f}", show_memory(row["peak_memory_bytes"])]
    for peer in row["peers"].values():
        cells += [f"{peer['tokens_per_second']:,.0f}", show_ratio(peer)]
        cells += [show_memory(peer["peak_memory_bytes"])]
    cells += [f"{row['padding']:.0%}", f"{row['share_of_peak']:.0%}"]
    return format_row(*cells)


if __name__ == "__main__":
    main()
