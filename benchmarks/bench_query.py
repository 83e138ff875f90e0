"""How long one query takes.

    python benchmarks/bench_query.py --data data/ --repeats 3

all-MiniLM-L6-v2 on a CPU, two threads for each side, all in one process. For each length 200 real
queries of exactly as many tokens, [CLS] and [SEP] included, one at a time, from text to normalized
vector, in blocks of 20 that the sides take in turns; p50 and p99 are over all queries of all
repeats. sentence-transformers gets a text as people give it one; ONNX Runtime is the peer of
`embedding_peers.py`, with transformers' graph fused by its own optimizer, bertkit's tokenizer and a
mean in NumPy. Vectors are compared first. OMP_WAIT_POLICY=PASSIVE, unless it is set already.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import numpy as np

from bertkit.tokenization.tokenizer import Tokenizer
from devices import ENGINES, Place
from embedding_peers import (
    Floats,
    PaddedPeer,
    build_onnx_runtime,
    build_sentence_transformers,
    export_onnx,
    load_embedder,
)
from minilm import find_minilm
from program import build_parser, list_versions, write_figures
from text_sets import read_news, read_reviews, read_squad
from turns import format_row, order_turn, show_ratio, summarize

NUM_SPECIAL = 2
LENGTHS = (8, 16, 64)
NUM_QUERIES, BLOCK = 200, 20
NUM_WARM_UP = 20
MAX_DIFFERENCE = 1e-4
THEIRS, RUNTIME = "sentence-transformers", "onnxruntime"
Query = Callable[[str], Floats]


def main() -> None:
    parser = build_parser(__doc__, "query.json")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--queries", type=int, default=NUM_QUERIES)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    place, folder = Place.begin(), find_minilm()
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        sides = build_sides(folder, Path(scratch), place)
        for length in arguments.lengths:
            texts = cut_queries(arguments.data, Tokenizer.load(folder), length, arguments.queries)
            result = {"tokens": length, **measure(texts, sides, arguments.repeats)}
            results.append(result)
            print(describe(result), flush=True)
    write_figures(arguments.output, list_versions(RUNTIME, THEIRS), results=results)


def build_sides(folder: Path, scratch: Path, place: Place) -> dict[str, Query]:
    """Each from one text to its vector."""
    exported = scratch / "exported.onnx"
    export_onnx(folder, exported)
    theirs = build_sentence_transformers(folder, place)
    peer = PaddedPeer(Tokenizer.load(folder), build_onnx_runtime(exported, folder))
    return {
        **{name: load_embedder(folder, engine, "fp32", place) for name, engine in ENGINES.items()},
        THEIRS: lambda text: theirs([text], 1)[0],
        RUNTIME: lambda text: peer([text], 1)[0],
    }


def cut_queries(data: Path, tokenizer: Tokenizer, length: int, count: int) -> list[str]:
    """Beginnings of real texts that have exactly as many tokens."""

    def cut() -> Iterator[str]:
        for text in chain(read_reviews(data), read_squad(data), read_news(data)):
            words = text.split()
            sizes = np.cumsum([len(ids) for ids in tokenizer.piece_ids(words)])
            (ends,) = np.nonzero(sizes == length - NUM_SPECIAL)
            if len(ends):
                yield " ".join(words[: ends[0] + 1])

    queries = list(islice(dict.fromkeys(cut()), count))
    if len(queries) < count:
        raise SystemExit(f"there are {len(queries)} texts of {length} tokens, not {count}")
    return queries


def measure(texts: Sequence[str], sides: dict[str, Query], repeats: int) -> dict[str, Any]:
    """Compare, then answer all queries several times, in blocks that the sides take in turns."""
    for name, query in sides.items():
        for text in texts[:NUM_WARM_UP]:
            difference = float(np.abs(query(text) - sides[THEIRS](text)).max())
            if difference > MAX_DIFFERENCE:
                raise SystemExit(f"{name} gives another vector for {text!r}: {difference:.1e}")
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)] * repeats
    names = list(sides)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number, block in enumerate(blocks):
        for name in order_turn(names, number):
            for text in block:
                started = time.perf_counter()
                sides[name](text)
                seconds[name].append(time.perf_counter() - started)
    return {
        "queries": len(texts),
        "repeats": repeats,
        "milliseconds": {
            name: {"p50": 1e3 * np.percentile(values, 50), "p99": 1e3 * np.percentile(values, 99)}
            for name, values in seconds.items()
        },
        "ratios": {
            name: {peer: compare_blocks(seconds[name], seconds[peer]) for peer in (RUNTIME, THEIRS)}
            for name in ENGINES
        },
    }


def compare_blocks(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """How many times as fast ours is, by the medians of the blocks."""
    medians = [
        [statistics.median(side[start : start + BLOCK]) for start in range(0, len(side), BLOCK)]
        for side in (ours, theirs)
    ]
    return summarize(*medians)


def describe(result: dict[str, Any]) -> str:
    lines = [f"{result['tokens']} tokens, {result['queries']} queries × {result['repeats']}"]
    for name, row in result["milliseconds"].items():
        ratios = result["ratios"].get(name, {}).items()
        cells = [f"{show_ratio(ratio)} of {peer}" for peer, ratio in ratios]
        lines.append(format_row(name, f"{row['p50']:.1f} ms", f"{row['p99']:.1f} ms", *cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
