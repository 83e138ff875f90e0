"""Speed of fine-tuned models' answers beside transformers' pipelines.

    python benchmarks/bench_predict.py --lines 10000 --rounds 3
    python benchmarks/bench_predict.py --lines 50000 --rounds 3 --device cuda

`classify` on sentences of SST-2 and `tag` on those of WNUT-17, repeated until there are enough
lines; all-MiniLM-L6-v2 fine-tuned for an epoch by `bertkit finetune`, or the models of
`--classifier` and `--tagger`. From lists of texts to answers, two threads, all in one process and
in turns; a round is all lines once by each side. bertkit gets the lines as they are, with PyTorch
alone and, on a CPU, with OpenVINO; the pipelines run

- with their defaults: one text at a time;
- at the best of five batch sizes, on texts that were sorted by length before the clock started.

bertkit gives entities and words with their offsets; the pipeline for tags gives rows for pieces,
which is its default and its fastest. Probabilities of every fiftieth line are compared first,
without the temperature that bertkit has found.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

from transformers import pipeline

from bertkit.inference.predictor import Predictor
from devices import Place
from minilm import find_minilm
from program import build_parser, list_versions, run_bertkit, write_figures
from task_sets import TaskSet, prepare_set, read_part
from turns import begin_table, compare_rates, describe_rates, fastest, format_row, take_turns

DEFAULTS, BEST = "pipeline, defaults", "pipeline, best batch, sorted"
EVERY_NTH = 50
MAX_DIFFERENCE = 1e-4
TASKS = {"classify": ("sst2", "text-classification"), "tag": ("wnut17", "token-classification")}


def main() -> None:
    parser = build_parser(__doc__, "predict.json", rounds=3)
    parser.add_argument("--classifier", type=Path)
    parser.add_argument("--tagger", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--lines", type=int, default=10_000)
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.begin(arguments.device)
    models = {"classify": arguments.classifier, "tag": arguments.tagger}
    results: list[dict[str, Any]] = []
    print(begin_table("task", "side", "speed", f"beside {DEFAULTS}", f"beside {BEST}"), flush=True)
    for task in arguments.tasks:
        with tempfile.TemporaryDirectory() as scratch:
            task_set = prepare_set(arguments.data, TASKS[task][0], Path(scratch))
            model = models[task] or finetune(task_set, Path(scratch) / "model")
            texts = read_lines(task_set, arguments.lines)
            results.append({"task": task, **measure(task, model, texts, arguments.rounds, place)})
        print("\n".join(describe(results[-1])), flush=True)
        machine = {**place.describe(), **list_versions("openvino")}
        write_figures(arguments.output, machine, results=results)


def finetune(task_set: TaskSet, output: Path) -> Path:
    """A model that has seen each example once."""
    words = ["finetune", task_set.task, "--model", find_minilm(), "--output", output]
    words += ["--train", task_set.parts["train"], "--dev", task_set.parts["dev"]]
    words += ["--epochs", 1, "--precision", "fp32"]
    words += ["--pooling", "cls"] if task_set.task == "classify" else []  # which pipelines read
    run_bertkit(*words)
    return output


def read_lines(task_set: TaskSet, count: int) -> list[str]:
    """All texts of a set, the test part first, from the beginning again until there are enough."""
    examples = [each for part in ("test", "dev", "train") for each in read_part(task_set, part)]
    texts = [each.get("text") or " ".join(each["tokens"]) for each in examples]
    return list(islice(cycle(texts), count))


def measure(task: str, model: Path, texts: list[str], rounds: int, place: Place) -> dict[str, Any]:
    """Compare answers, choose the batch size, take turns."""
    ours: dict[str, Predictor[Any, Any, Any]] = place.load_ours(Predictor.load, model)
    theirs = pipeline(TASKS[task][1], str(model), device=place.device)
    some = texts[::EVERY_NTH]
    for name, predictor in ours.items():
        plain = replace(predictor, task=replace(predictor.task, numbers={}))
        difference = COMPARE[task](plain(some), theirs(some))
        if difference > MAX_DIFFERENCE:
            raise SystemExit(f"{name} gives other probabilities: {difference:.1e}")
    ordered = sorted(texts, key=len)
    tried = ordered[:: max(1, len(texts) // 1000)]
    size = fastest({size: partial(theirs, tried, batch_size=size) for size in place.batch_sizes}, 2)
    sides: dict[str, Callable[[], object]] = {
        **{name: partial(predictor, texts) for name, predictor in ours.items()},
        DEFAULTS: partial(theirs, texts),
        BEST: partial(theirs, ordered, batch_size=size),
    }
    seconds = take_turns(sides, rounds, num_uncounted=0)  # all have run before
    return {
        "lines": len(texts),
        "rounds": rounds,
        "best_batch_size": size,
        **compare_rates(seconds, len(texts), "lines", list(ours), (DEFAULTS, BEST)),
        "seconds": seconds,
    }


def compare_labels(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    return max(
        abs(float(one.probabilities[other["label"]] - other["score"]))
        for one, other in zip(ours, theirs, strict=True)
    )


def compare_tags(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The largest difference of two probabilities of a word's tag; the pipeline leaves out O."""
    differences = [0.0]
    for tagging, rows in zip(ours, theirs, strict=True):
        words = {word.start: word for word in tagging.words}
        firsts = [(row, words[row["start"]]) for row in rows if row["start"] in words]
        differences += [abs(row["score"] - word.probability) for row, word in firsts]
        tagged = sum(word.tag != "O" for word in tagging.words)
        differences.append(float(tagged != len(firsts)))
    return max(differences)


COMPARE = {"classify": compare_labels, "tag": compare_tags}


def describe(result: dict[str, Any]) -> list[str]:
    best = f"{result['lines']:,} lines; the pipeline's best batch size: {result['best_batch_size']}"
    lines = describe_rates(result["task"], result, "lines")
    return [*lines, format_row(result["task"], best, "", "", "")]


if __name__ == "__main__":
    main()
