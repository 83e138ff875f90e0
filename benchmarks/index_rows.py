"""Texts, vectors and queries of bench_index.py, in files of a folder that its sides read.

The texts are paragraphs of books, or their sentences, drawn with a fixed seed; the queries are
sentences of paragraphs that weren't drawn. The vectors are those of the model that comes with
bertkit, of the first 64 tokens, or random ones, of which those of the queries are neighbors.
"""

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from program import run_bertkit

LONGEST_QUERY = 200  # characters
NUM_FEATURES = 384
NOISE = 0.5  # of a query beside the row that it is a neighbor of
BLOCK_ROWS = 50_000
NUM_PARTS = 100
PART = 7  # what the filter passes: one row of a hundred
PASSAGES, QUERIES = "passages", "queries"

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """Texts with numbers, from which ids and fields come, and vectors."""

    numbers: Sequence[int]
    texts: Sequence[str]
    vectors: Vectors

    @property
    def ids(self) -> list[str]:
        return [f"p{number}" for number in self.numbers]

    @property
    def fields(self) -> list[dict[str, int]]:
        return [{"part": number % NUM_PARTS, "number": number} for number in self.numbers]

    def take(self, start: int, stop: int) -> "Rows":
        numbers, texts = self.numbers[start:stop], self.texts[start:stop]
        return Rows(numbers, texts, self.vectors[start:stop])


@dataclass(frozen=True)
class Query:
    """A sentence and its vector."""

    text: str
    vector: NDArray[np.float32]


class Known:
    """The vectors of texts, for stores that ask a model for them."""

    def __init__(self) -> None:
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def learn(self, texts: Sequence[str], vectors: Vectors) -> None:
        self._vectors |= dict(zip(texts, vectors, strict=True))

    @property
    def dimension(self) -> int:
        return len(next(iter(self._vectors.values())))

    def look_up(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._vectors[text] for text in texts])


@dataclass(frozen=True)
class Materials:
    """What `folder` holds."""

    folder: Path

    def read_rows(self) -> Rows:
        texts = self._read_texts(PASSAGES)
        return Rows(range(len(texts)), texts, self.read_vectors())

    def read_vectors(self) -> Vectors:
        vectors: Vectors = np.load(self.folder / f"{PASSAGES}.npy")
        return vectors

    def read_queries(self) -> list[Query]:
        texts = self._read_texts(QUERIES)
        vectors = np.load(self.folder / f"{QUERIES}.npy")
        return [Query(*each) for each in zip(texts, vectors, strict=True)]

    def _read_texts(self, name: str) -> list[str]:
        with (self.folder / f"{name}.jsonl").open(encoding="utf-8") as stream:
            return [json.loads(line)["text"] for line in stream]

    def prepare(
        self, data: Path, counts: tuple[int, int], letters: int, *, sentences: bool, drawn: bool
    ) -> None:
        """Write the files that aren't there.

        Args:
            data: the folder of public data sets.
            counts: of texts and queries.
            letters: that a text has at least.
            sentences: whether texts are sentences instead of paragraphs.
            drawn: whether vectors are random.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        num_texts, num_queries = counts
        paths = [self.folder / f"{name}.jsonl" for name in (PASSAGES, QUERIES)]
        if not all(path.exists() for path in paths):
            found = sorted((data / "corpus").glob("*books/*.gz" if sentences else "books/*.gz"))
            texts = [text for text in list_texts(found, sentences) if len(text) >= letters]
            if sentences:
                texts = list(dict.fromkeys(texts))  # none twice
            if len(texts) < num_texts + num_queries:
                raise SystemExit(f"{data} has {len(texts):,} such texts; give fewer --rows")
            chosen = random.Random(0).sample(texts, num_texts + num_queries)
            write_texts(paths[0], chosen[:num_texts])
            queries = chosen[num_texts:]
            write_texts(paths[1], [text.split(". ")[0][:LONGEST_QUERY] for text in queries])
        if drawn and not (self.folder / f"{QUERIES}.npy").exists():
            self._draw(num_texts, num_queries)
        for path in paths:
            if not path.with_suffix(".npy").exists():
                words = ("--text-column", "text", "--max-length", 64)
                run_bertkit("embed", path, "--output", path.with_suffix(".npy"), *words)

    def _draw(self, num_texts: int, num_queries: int) -> None:
        generator = np.random.default_rng(0)
        vectors = np.empty((num_texts, NUM_FEATURES), np.float32)
        for start in range(0, num_texts, BLOCK_ROWS):
            block = vectors[start : start + BLOCK_ROWS]
            block[:] = normalize(generator.standard_normal(block.shape, np.float32))
        chosen = vectors[generator.integers(num_texts, size=num_queries)]
        noise = normalize(generator.standard_normal(chosen.shape, np.float32))
        np.save(self.folder / f"{PASSAGES}.npy", vectors)
        np.save(self.folder / f"{QUERIES}.npy", normalize(chosen + NOISE * noise))


def normalize(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def list_texts(paths: Sequence[Path], sentences: bool) -> Iterator[str]:
    """The paragraphs of files, or their sentences."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in map(str.strip, stream):
                yield from re.split(r"(?<=[.!?]) ", line) if sentences else [line]


def write_texts(path: Path, texts: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": text}) + "\n" for text in texts)


def find_best(vectors: Vectors, query: Query, numbers: NDArray[np.int64], top_k: int) -> set[str]:
    """The ids of the rows among `numbers` that are nearest to a query."""
    scores = vectors[numbers] @ query.vector
    return {f"p{number}" for number in numbers[np.argsort(-scores, kind="stable")[:top_k]]}
