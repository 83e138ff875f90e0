"""Training for search on Cranfield: the verdict of a run beside what becomes of other queries.

    python benchmarks/bench_retrieval_training.py --data data/ --folds 5 --epochs 3

The queries with a relevant abstract are divided into folds. Of each, the queries of the other folds
train all-MiniLM-L6-v2, or `--model`: four fifths with their relevant abstracts are the training
pairs, the others are held out, for the verdict and the choice of the step. nDCG@10 is then measured
on the fold's queries, which no run has seen, over all 1,400 abstracts, as `bertkit evaluate
--retrieval` does. The truth beside the verdict is the difference from the model before training,
with its paired bootstrap interval.

Sides: `bertkit`, the command with the defaults; `mined`, with `--negatives mine`; and
sentence-transformers' trainer on the same pairs, with the batch size (32), learning rate, number of
steps and precision of the first, of which it keeps the last step.
"""

import csv
import json
import random
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import bertkit
from bench_contrastive import run_side
from bertkit.tasks.metrics.correlation import bootstrap_interval
from contrastive_side import LEARNING_RATE, Plan
from minilm import find_minilm
from program import be_quiet, build_parser, run_bertkit, write_figures
from search_sets import JudgedSet, read_cranfield
from turns import begin_table, format_row

SIDES = ("bertkit", "mined", "sentence-transformers")
SHARE_HELD_OUT = 5  # one of so many queries that aren't the fold's
BATCH_SIZE, NDCG = 32, 0  # the latter is the place among the metrics of a query


def main() -> None:
    parser = build_parser(__doc__, "retrieval_training.json")
    parser.add_argument("--model", type=Path, help="another encoder than all-MiniLM-L6-v2")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--measured", type=int, help="how many of the folds; by default all")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-length", type=int, default=256)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    arguments = parser.parse_args()
    be_quiet()
    judged = read_cranfield(arguments.data)
    queries = list(judged.queries)
    random.Random(0).shuffle(queries)
    rows: list[dict[str, Any]] = []
    start = measure(arguments.model or find_minilm(), judged, queries)
    print(begin_table("fold", "side", "verdict", "before", "after", "difference"), flush=True)
    with TemporaryDirectory() as folder:
        for number in range(arguments.measured or arguments.folds):
            before = {query: start[query] for query in queries[number :: arguments.folds]}
            rows += measure_fold(arguments, judged, before, Path(folder) / str(number))
    write_figures(arguments.output, results=rows, sides=join_folds(start, rows))


def measure_fold(
    arguments: Namespace, judged: JudgedSet, before: dict[str, float], folder: Path
) -> list[dict[str, Any]]:
    """Train each side, and measure it on the queries of `before`, which are the fold's."""
    folder.mkdir()
    others = [query for query in judged.queries if query not in before]
    random.Random(0).shuffle(others)
    write_pairs(folder / "dev.csv", judged, others[::SHARE_HELD_OUT])
    train = [query for number, query in enumerate(others) if number % SHARE_HELD_OUT]
    num_pairs = write_pairs(folder / "train.csv", judged, train)
    model = arguments.model or find_minilm()
    rows = []
    for side in arguments.sides:
        output = folder / side
        verdict = "–"
        if side == "sentence-transformers":
            num_steps = arguments.epochs * -(-num_pairs // BATCH_SIZE)
            plan = Plan(
                side=side,
                folder=str(folder),
                model=str(model),
                is_scored=False,
                num_steps=max(1, num_steps - 2),  # it trains two more, which aren't timed
                batch_size=min(BATCH_SIZE, num_pairs),
                precision=arguments.precision,
                saved=str(output),
            )
            run_side(plan)
        else:
            train_ours(arguments, folder, model, output, is_mined=side == "mined")
            metrics = json.loads((output / "metrics.json").read_text("utf-8"))
            verdict = (metrics["verdict"] or {"word": verdict})["word"]
        found = describe(before, measure(output, judged, list(before)))
        print(format_row(folder.name, side, verdict, *show(found)), flush=True)
        rows.append({"fold": folder.name, "side": side, "verdict": verdict, **found})
    return rows


def train_ours(
    arguments: Namespace, folder: Path, model: Path, output: Path, *, is_mined: bool
) -> None:
    """Run the command."""
    run_bertkit(
        *("finetune", "embed", "--train", folder / "train.csv", "--dev", folder / "dev.csv"),
        *("--model", model, "--output", output, "--epochs", arguments.epochs),
        *("--batch-size", BATCH_SIZE, "--learning-rate", LEARNING_RATE, "--device", "cpu"),
        *("--max-length", arguments.max_length, "--precision", arguments.precision),
        *(("--negatives", "mine") if is_mined else ()),
    )


def write_pairs(path: Path, judged: JudgedSet, queries: Sequence[str]) -> int:
    """Write the queries with each of their relevant abstracts; return how many."""
    pairs = [
        (judged.queries[query], judged.documents[name])
        for query in queries
        for name, value in judged.relevance[query].items()
        if value > 0 and name in judged.documents
    ]
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("query", "passage"), *pairs])
    return len(pairs)


def measure(model: Path, judged: JudgedSet, queries: Sequence[str]) -> dict[str, float]:
    """The nDCG@10 of each query over all abstracts."""
    corpus = [{"id": name, "text": text} for name, text in judged.documents.items()]
    asked = [{"id": query, "text": judged.queries[query]} for query in queries]
    qrels = [
        {"query-id": query, "corpus-id": name, "score": value}
        for query in queries
        for name, value in judged.relevance[query].items()
    ]
    found = bertkit.evaluate(model, retrieval=(corpus, asked, qrels), device="cpu")
    pairs = zip(found.examples, found.predictions, strict=True)
    return {query.place: one.metrics[NDCG] for query, one in pairs}


def describe(before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    """Both means, and the mean difference with its paired bootstrap interval."""
    values = np.array([[before[query], value] for query, value in after.items()])
    differences = values[:, 1] - values[:, 0]
    low, high = bootstrap_interval(
        lambda weights: weights @ differences / weights.sum(axis=-1), len(differences)
    )
    difference = {"mean": float(differences.mean()), "low": low, "high": high}
    means = dict(zip(("before", "after"), values.mean(axis=0).tolist(), strict=True))
    return {**means, "difference": difference, "queries": after}


def join_folds(start: dict[str, float], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each side makes of the queries of all folds."""
    joined = []
    for side in dict.fromkeys(row["side"] for row in rows):
        own = [row["queries"] for row in rows if row["side"] == side]
        found = describe(start, {query: value for each in own for query, value in each.items()})
        print(format_row("all", side, "–", *show(found)), flush=True)
        joined.append({"side": side, **found, "queries": len(found["queries"])})
    return joined


def show(found: dict[str, Any]) -> list[str]:
    interval = "{mean:+.4f} ({low:+.4f} to {high:+.4f})".format(**found["difference"])
    return [f"{found['before']:.4f}", f"{found['after']:.4f}", interval]


if __name__ == "__main__":
    main()
