"""Searching vectors: exact search beside a NumPy product and faiss.

    python benchmarks/bench_search.py --rows 100000 1000000 --rounds 5

384 numbers a vector, single queries and batches of 64, the ten best rows. The vectors are drawn
around centers that lie around centers, with numbers that shrink from the first to the last, so
that the ten best are about as alike (cosines of 0.67 to 0.57) as among 14,500 short texts embedded
by all-MiniLM-L6-v2 (0.68 to 0.55); `--vectors FILE.npy` takes others, a thousand of which become
the queries. The sides take turns in one process with two threads; a ratio is that of one round. The
rows that each finds are compared with the best in float64 (recall). Peers: `vectors @ query` with
argpartition and a sort of what it leaves, and faiss's IndexFlatIP, with its BLAS or without,
whichever is faster.
"""

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import faiss
import numpy as np
from numpy.typing import NDArray

from bertkit.retrieval.vector_index import VectorIndex
from devices import NUM_THREADS, Place
from program import build_parser, write_figures
from turns import fastest, format_row, show_ratio, summarize, take_turns

NUM_FEATURES = 384
NUM_QUERIES = 1000
TOP_K = 10
BATCH_SIZES = (1, 64)
CALLS_A_TURN = {1: 5, 64: 1}
BLAS_THRESHOLDS = (1, 1_000_000)  # queries from which on faiss uses BLAS: always, never
BLOCK_ROWS = 50_000

Vectors = NDArray[np.float32]
Found = NDArray[np.int64]
Side = Callable[[Vectors], Found]


def main() -> None:
    parser = build_parser(__doc__, "search.json", data=None, rounds=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--sides", nargs="+", default=["exact", "numpy", "faiss"])
    arguments = parser.parse_args()
    Place.begin()
    faiss.omp_set_num_threads(NUM_THREADS)
    results = []
    for vectors, queries in read_sets(arguments.rows, arguments.vectors):
        results += compare(vectors, queries, arguments.sides, arguments.rounds)
    write_figures(arguments.output, {"faiss": faiss.__version__}, results=results)


def read_sets(sizes: list[int], path: Path | None) -> list[tuple[Vectors, Vectors]]:
    """Vectors and queries: drawn, or those of a file."""
    if path is None:
        return [draw_clustered(num_rows) for num_rows in sizes]
    vectors = np.load(path)[np.random.default_rng(0).permutation(len(np.load(path)))]
    return [(np.ascontiguousarray(vectors[NUM_QUERIES:]), vectors[:NUM_QUERIES])]


def draw_clustered(num_rows: int, seed: int = 0) -> tuple[Vectors, Vectors]:
    """Unit vectors around centers around centers, and queries of the same kind."""
    random = np.random.default_rng(seed)
    scale = np.arange(1, NUM_FEATURES + 1, dtype=np.float32) ** -0.5
    outer = random.standard_normal((max(8, num_rows // 2000), NUM_FEATURES), np.float32)
    num_inner = max(64, num_rows // 10)
    inner = outer[random.integers(len(outer), size=num_inner)]
    inner += 1.2 * random.standard_normal(inner.shape, np.float32)
    weights = np.arange(1, num_inner + 1) ** -0.5  # some clusters are larger than others
    drawn = np.empty((num_rows + NUM_QUERIES, NUM_FEATURES), np.float32)
    for start in range(0, len(drawn), BLOCK_ROWS):
        block = drawn[start : start + BLOCK_ROWS]
        chosen = random.choice(num_inner, len(block), p=weights / weights.sum())
        block[:] = inner[chosen] + 1.5 * random.standard_normal(block.shape, np.float32)
        block *= scale
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return drawn[:num_rows], drawn[num_rows:]


def compare(
    vectors: Vectors, queries: Vectors, names: list[str], rounds: int
) -> list[dict[str, Any]]:
    started = time.perf_counter()
    index = VectorIndex(vectors, "dot")  # they have length 1, and the peers compute products
    open_seconds = time.perf_counter() - started
    truth = index.search(queries[:64], TOP_K)[1]
    check_truth(vectors, queries, truth)
    makers: dict[str, Callable[[], Side]] = {
        "exact": lambda: lambda batch: index.search(batch, TOP_K)[1],
        "numpy": lambda: lambda batch: search_numpy(vectors, batch),
        "faiss": lambda: make_faiss(vectors),
    }
    sides = {name: makers[name]() for name in names}
    results = []
    for size in BATCH_SIZES:
        seconds = take_turns(
            {name: repeat(side, queries, size) for name, side in sides.items()}, rounds
        )
        recalls = {name: find_recall(side, queries, truth, size) for name, side in sides.items()}
        result = summarize_sides(seconds, recalls, size)
        sizes = {"rows": len(vectors), "batch": size, "open_seconds": open_seconds}
        results.append(sizes | result)
        for name in names:
            print(describe_row(results[-1], name), flush=True)
    return results


def make_faiss(vectors: Vectors) -> Side:
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search_with(threshold: int, batch: Vectors) -> Found:
        faiss.cvar.distance_compute_blas_threshold = threshold
        found: Found = index.search(batch, TOP_K)[1]
        return found

    def search(batch: Vectors) -> Found:
        if len(batch) not in chosen:
            trials = {each: partial(search_with, each, batch) for each in BLAS_THRESHOLDS}
            chosen[len(batch)] = fastest(trials, trials=2)
        return search_with(chosen[len(batch)], batch)

    chosen: dict[int, int] = {}
    return search


def search_numpy(vectors: Vectors, batch: Vectors) -> Found:
    """One product, and the best of each row of it."""
    scores = batch @ vectors.T if len(batch) > 1 else (vectors @ batch[0])[None]
    rows = np.argpartition(scores, -TOP_K, axis=1)[:, -TOP_K:]
    order = np.argsort(-np.take_along_axis(scores, rows, axis=1), axis=1)
    found: Found = np.take_along_axis(rows, order, axis=1)
    return found


def repeat(side: Side, queries: Vectors, size: int) -> Callable[[], None]:
    """Some calls of a side, with other queries each."""
    numbers = iter(range(10**9))

    def run() -> None:
        for _ in range(CALLS_A_TURN[size]):
            start = next(numbers) * size % (len(queries) - size)
            side(queries[start : start + size])

    return run


def check_truth(vectors: Vectors, queries: Vectors, truth: Found) -> None:
    """See that what is taken for the best rows is, in float64, for a few queries."""
    for query, rows in zip(queries[:4], truth[:4], strict=True):
        scores = np.concatenate(
            [
                vectors[start : start + BLOCK_ROWS].astype(np.float64) @ query.astype(np.float64)
                for start in range(0, len(vectors), BLOCK_ROWS)
            ]
        )
        if rows.tolist() != np.lexsort((np.arange(len(scores)), -scores))[:TOP_K].tolist():
            raise SystemExit("the exact search isn't exact")


def find_recall(side: Side, queries: Vectors, truth: Found, size: int) -> float:
    """Which part of the best rows of 64 queries a side finds."""
    found = np.concatenate([side(queries[start : start + size]) for start in range(0, 64, size)])
    return statistics.mean(
        len(set(ours) & set(best)) / TOP_K
        for ours, best in zip(found.tolist(), truth.tolist(), strict=True)
    )


def summarize_sides(
    seconds: dict[str, list[float]], recalls: dict[str, float], size: int
) -> dict[str, Any]:
    """Queries a second and recall of each side, and how many times as fast ours are."""
    num_queries = size * CALLS_A_TURN[size]
    result: dict[str, Any] = {
        name: {"queries_per_second": num_queries / statistics.median(values), "recall": recall}
        for (name, values), recall in zip(seconds.items(), recalls.values(), strict=True)
    }
    for peer in {"numpy", "faiss"} & seconds.keys():
        result[f"exact_to_{peer}"] = summarize(seconds["exact"], seconds[peer])
    return result


def describe_row(result: dict[str, Any], name: str) -> str:
    peers = [result.get(f"{name}_to_{peer}") for peer in ("numpy", "faiss")]
    return format_row(
        f"{result['rows']:,}",
        result["batch"],
        name,
        f"{result[name]['queries_per_second']:,.1f}",
        f"{result[name]['recall']:.4f}",
        *("" if ratio is None else show_ratio(ratio) for ratio in peers),
    )


if __name__ == "__main__":
    main()
