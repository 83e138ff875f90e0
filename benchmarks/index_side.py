"""One side of bench_index.py for one phase: a store is written, or opened and searched.

    python benchmarks/index_side.py bertkit write FOLDER STORE --changed 1000 --queries 200

It prints its figures as JSON: seconds on the clock and of the processors, bytes, recall.
"""

import argparse
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from index_peers import PEERS
from index_rows import NUM_PARTS, PART, Known, Materials, Query, Rows, find_best
from index_store import TOP_K, FindsBoth, Store
from peaks import read_status
from program import Answer, answer

if TYPE_CHECKING:
    from bertkit.retrieval.index_model import IndexModel
    from bertkit.retrieval.settings import By

LONGEST_SECONDS = 3.0  # of searches of one kind
CHECKED = 50  # queries whose recall is found
BERTKIT = "bertkit"
LONGEST_TEXT = 1 << 20  # so that each is one passage, as it is of the peers


class Bertkit(Store):
    """Ours: one file with texts, words, fields and vectors, all searched exactly."""

    modules = ("torch", "bertkit.retrieval.index", "bertkit.retrieval.index_model")

    def __init__(self, folder: Path, known: Known) -> None:
        from bertkit.retrieval.index import Index

        folder.mkdir(exist_ok=True)
        self._index = Index(folder / "passages.bertkit", model=make_model(known))

    def add(self, rows: Rows) -> None:
        given = zip(rows.ids, rows.texts, rows.fields, strict=True)
        documents = [{"id": name, "text": text, **fields} for name, text, fields in given]
        self._index.add(documents, id="id", text="text")

    def delete(self, rows: Rows) -> None:
        self._index.delete(rows.ids)

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        return self._find(query, f"part = {PART}" if filtered else None, by="vectors")

    def search_both(self, query: Query) -> list[str]:
        """By words and vectors."""
        return self._find(query, None, by="both")

    def _find(self, query: Query, where: str | None, by: "By") -> list[str]:
        from bertkit.retrieval.settings import QuerySettings

        options = QuerySettings(top_k=TOP_K, by=by, where=where)
        (hits,) = self._index.find([query.text], query.vector[None], options)
        return [hit.id for hit in hits]

    def close(self) -> None:
        self._index.close()


STORES: dict[str, type[Store]] = {BERTKIT: Bertkit, **PEERS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("side", choices=STORES)
    parser.add_argument("phase", choices=["write", "fill", "search"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--changed", type=int, required=True)
    arguments = parser.parse_args()
    store = STORES[arguments.side]
    for module in store.modules:
        importlib.import_module(module)
    phase = {"write": write, "fill": fill, "search": search}[arguments.phase]
    answer(phase(store, Materials(arguments.folder), arguments.store, arguments.changed))


def write(kind: type[Store], materials: Materials, folder: Path, changed: int) -> Answer:
    """Build a store, add rows to it, and delete as many."""
    rows, known = read_known(materials)
    num_rows = len(rows.texts) - changed
    num_built = min(num_rows, kind.most_rows or num_rows)
    opened: list[Store] = []
    clocks = {
        "build": measure(lambda: opened.append(open_with(kind, folder, known, rows, 0, num_built))),
        "add": measure(lambda: opened[0].add(rows.take(num_rows, num_rows + changed))),
        "delete": measure(lambda: opened[0].delete(rows.take(0, changed))),
    }
    opened[0].close()
    return {"num_built": num_built, **clocks, "disk_bytes": count_bytes(folder)}


def fill(kind: type[Store], materials: Materials, folder: Path, changed: int) -> Answer:
    """What `write` leaves, with all rows, for a store that is built of some."""
    rows, known = read_known(materials)
    open_with(kind, folder, known, rows, changed, len(rows.texts)).close()
    return {"disk_bytes": count_bytes(folder)}


def open_with(
    kind: type[Store], folder: Path, known: Known, rows: Rows, start: int, stop: int
) -> Store:
    store = kind(folder, known)
    store.add(rows.take(start, stop))
    return store


def search(kind: type[Store], materials: Materials, folder: Path, changed: int) -> Answer:
    """Open a store and search it, with rows that pass a filter, too, and by words and vectors."""
    queries = materials.read_queries()
    known = Known()
    known.learn([query.text for query in queries], np.stack([query.vector for query in queries]))
    rows = None
    if not kind.is_kept:
        rows, known = read_known(materials)
    first: list[Store] = []

    def open_and_search() -> None:
        if rows is None:
            first.append(kind(folder, known))
        else:
            first.append(open_with(kind, folder, known, rows, changed, len(rows.texts)))
        first[0].search(queries[-1], filtered=False)

    figures: Answer = {"cold": measure(open_and_search)}
    (store,) = first
    figures["search"], found = time_searches(
        lambda query: store.search(query, filtered=False), queries
    )
    figures["filtered"], passed = time_searches(
        lambda query: store.search(query, filtered=True), queries
    )
    figures["both"] = None
    if isinstance(store, FindsBoth):
        figures["both"], _ = time_searches(store.search_both, queries)
    figures["memory_bytes"] = read_status("RssAnon")
    figures["resident_bytes"] = read_status("VmHWM")
    store.close()
    vectors = materials.read_vectors()
    numbers = np.arange(changed, len(vectors))
    best = [find_best(vectors, query, numbers, TOP_K) for query in queries[:CHECKED]]
    numbers = numbers[numbers % NUM_PARTS == PART]
    best_passed = [find_best(vectors, query, numbers, TOP_K) for query in queries[:CHECKED]]
    return {
        **figures,
        "recall": find_recall(found, best),
        "filtered_recall": find_recall(passed, best_passed),
    }


def make_model(known: Known) -> "IndexModel":
    """Looks vectors up; a text is one passage."""
    from bertkit.retrieval.index_model import IndexModel

    return IndexModel(
        identity={"model": "known vectors", "dimension": known.dimension},
        similarity="cosine",
        embed_passages=known.look_up,
        embed_queries=known.look_up,
        measure=len,
        passage_tokens=LONGEST_TEXT,
    )


def read_known(materials: Materials) -> tuple[Rows, Known]:
    rows, known = materials.read_rows(), Known()
    known.learn(rows.texts, rows.vectors)
    queries = materials.read_queries()
    known.learn([query.text for query in queries], np.stack([query.vector for query in queries]))
    return rows, known


def measure(run: Callable[[], object]) -> Answer:
    started, cpu_started = time.perf_counter(), time.process_time()
    run()
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
    }


def time_searches(
    find: Callable[[Query], list[str]], queries: list[Query]
) -> tuple[Answer, list[list[str]]]:
    """The median and the 95th percentile of searches, as many as there is time for."""
    found, clocks = [find(queries[0])], []
    deadline = time.perf_counter() + LONGEST_SECONDS
    for query in queries[1:]:
        clocks.append(measure(lambda: found.append(find(query))))  # noqa: B023 - called at once
        if time.perf_counter() > deadline:
            break
    seconds = [each["seconds"] for each in clocks]
    return {
        "p50_seconds": float(np.percentile(seconds, 50)),
        "p95_seconds": float(np.percentile(seconds, 95)),
        "cpu_seconds": float(np.mean([each["cpu_seconds"] for each in clocks])),
        "num_queries": len(clocks),
    }, found


def find_recall(found: list[list[str]], best: list[set[str]]) -> float:
    pairs = zip(found, best, strict=False)
    return float(np.mean([len(truth & set(ids)) / len(truth) for ids, truth in pairs]))


def count_bytes(folder: Path) -> int | None:
    if not folder.exists():
        return None
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
