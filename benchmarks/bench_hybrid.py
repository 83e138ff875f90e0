"""How good search by words, by vectors, by both and with a reranking model is.

    python benchmarks/bench_hybrid.py --data data/ --rerank cranfield

nDCG@10 and recall@10 on Cranfield and on the questions and paragraphs of SQuAD, by `bertkit.Index`
as it comes, with the model that comes along; a document counts by its best passage. Differences
stand with the 95 % interval of a paired bootstrap over the queries. `fusion` is nDCG@10 for each
constant of reciprocal rank fusion and depth of the two lists, on the documents of each.

With `--rerank`, half of the queries of a set train a model of pairs with `finetune rerank`, since
no public one comes along: relevant documents have the label 1, others among the best 50 have 0, 600
pairs in all. Up to 112 other queries are then searched without it (`both`) and with it
(`reranked`).
"""

import random
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bertkit import Index
from bertkit.retrieval.fusion import fuse
from bertkit.tasks.metrics.correlation import bootstrap_interval
from program import build_parser, run_bertkit, write_figures
from search_sets import NUM_TOP, JudgedSet, ndcg, read_cranfield, read_squad, recall
from task_sets import write_jsonl
from turns import format_row

SETS: dict[str, Callable[[Path], JudgedSet]] = {"cranfield": read_cranfield, "squad": read_squad}
CONSTANTS = (1, 5, 10, 20, 40, 60, 100)
DEPTHS = (20, 50, 100, 200, 400)
NUM_CANDIDATES, NUM_NEGATIVES, NUM_HELD_OUT = 50, 3, 112
Found = dict[str, list[str]]  # documents of each query, best first
Pair = dict[str, str | int]


def main() -> None:
    parser = build_parser(__doc__, "hybrid.json")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--model", help="in place of the one that comes along")
    parser.add_argument("--rerank", nargs="*", choices=SETS, default=[])
    parser.add_argument("--pairs", type=int, default=600, help="to train a reranking model with")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    fusion: list[dict[str, Any]] = []
    for name in arguments.sets:
        judged = SETS[name](arguments.data)
        with TemporaryDirectory() as folder, Index(model=arguments.model) as index:
            index.add(
                [{"id": one, "text": text} for one, text in judged.documents.items()],
                id="id",
                text="text",
            )
            found = {
                by: search(index, judged, judged.queries, by=by) for by in ("words", "vectors")
            }
            fusion += [{"set": name, **row} for row in try_fusion(judged, found)]
            found["both"] = search(index, judged, judged.queries, by="both")
            rows += report(name, judged, found, "vectors")
            if name in arguments.rerank:
                found = compare_reranked(index, judged, arguments, Path(folder))
                rows += report(f"{name}, half", judged, found, "both")
    write_figures(arguments.output, results=rows, fusion=fusion)


def search(index: Index, judged: JudgedSet, queries: Collection[str], **options: Any) -> Found:
    """The best documents of each query, as many as the deepest list."""
    hits = index.search(
        [judged.queries[query] for query in queries],
        options.pop("top_k", max(DEPTHS)),
        by_document=True,
        **options,
    )
    return {query: [hit.id for hit in each] for query, each in zip(queries, hits, strict=True)}


def try_fusion(judged: JudgedSet, found: dict[str, Found]) -> Iterator[dict[str, Any]]:
    """nDCG@10 of what each constant and depth make of the two rankings."""
    numbers = {name: number for number, name in enumerate(judged.documents)}
    names = list(judged.documents)
    for depth in DEPTHS:
        for constant in CONSTANTS:
            fused = {
                query: fuse(
                    [[numbers[one] for one in by[query][:depth]] for by in found.values()], constant
                )
                for query in judged.queries
            }
            best = {query: [names[row] for row, _ in rows] for query, rows in fused.items()}
            value = fmean(score(judged, best)["ndcg"])
            yield {"depth": depth, "constant": constant, "ndcg": value}


def score(judged: JudgedSet, found: Found) -> dict[str, list[float]]:
    """Each metric of each query."""
    return {
        metric.__name__: [metric(each, judged.relevance[query]) for query, each in found.items()]
        for metric in (ndcg, recall)
    }


def report(
    name: str, judged: JudgedSet, found: dict[str, Found], other: str
) -> Iterator[dict[str, Any]]:
    """A row for each way, with its differences from another way."""
    scores = {way: score(judged, each) for way, each in found.items()}
    for way, values in scores.items():
        row: dict[str, Any] = {"set": name, "queries": len(found[way]), "way": way}
        for metric, each in values.items():
            differences = np.subtract(each, scores[other][metric])
            row[metric] = fmean(each)
            row[f"{metric}_difference"] = {"from": other, **find_interval(differences)}
        shown = (f"{row[metric]:.4f} ({show(row[f'{metric}_difference'])})" for metric in values)
        print(format_row(name, way, *shown), flush=True)
        yield row


def find_interval(differences: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_interval(
        lambda weights: weights @ differences / weights.sum(axis=-1), len(differences)
    )
    return {"mean": float(differences.mean()), "low": low, "high": high}


def show(difference: dict[str, Any]) -> str:
    return "{mean:+.4f}, {low:+.4f} to {high:+.4f}".format(**difference)


def compare_reranked(
    index: Index, judged: JudgedSet, arguments: Namespace, folder: Path
) -> dict[str, Found]:
    """Train with the queries of even places, and search for the others."""
    queries = list(judged.queries)
    found = search(index, judged, queries[::2], top_k=NUM_CANDIDATES)
    pairs = islice(chain.from_iterable(draw_pairs(judged, found)), arguments.pairs)
    train = write_jsonl(folder / "pairs.jsonl", pairs)
    reranker = folder / "reranker"
    model = () if arguments.model is None else ("--model", arguments.model)
    run_bertkit(
        *("finetune", "rerank", "--train", train, "--output", reranker, "--epochs", 3, *model),
    )
    held_out = queries[1::2][:NUM_HELD_OUT]
    return {
        "both": search(index, judged, held_out, top_k=NUM_TOP),
        "reranked": search(index, judged, held_out, top_k=NUM_TOP, rerank=str(reranker)),
    }


def draw_pairs(judged: JudgedSet, found: Found) -> Iterator[list[Pair]]:
    """The pairs of each query, in an order that is drawn."""
    draw = random.Random(0)
    for query in draw.sample(list(found), len(found)):
        relevant = [name for name, value in judged.relevance[query].items() if value > 0]
        others = [name for name in found[query] if name not in relevant]
        chosen = draw.sample(others, min(len(others), NUM_NEGATIVES * len(relevant)))
        yield [
            {"query": judged.queries[query], "passage": judged.documents[name], "label": value}
            for value, names in ((1, relevant), (0, chosen))
            for name in names
            if name in judged.documents
        ]


if __name__ == "__main__":
    main()
