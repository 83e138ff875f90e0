"""What a precision costs in quality.

    python benchmarks/bench_precision.py --data data/ --classifier sentiment/

all-MiniLM-L6-v2 on a CPU, in float32 and in each reduced precision: the mean and the lowest cosine
to the float32 vector of 2,000 sentences, Spearman's correlation on STS-B's test set, nDCG@10 on
Cranfield, and, with a model of `bertkit finetune classify` for SST-2, the accuracy on its test set
and how many of its labels change.
"""

import csv
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.predictor import Classifier
from bertkit.inference.settings import EngineName, Precision
from bertkit.tasks.metrics.correlation import spearman
from devices import Place
from embedding_peers import Floats, load_embedder
from minilm import find_minilm
from program import build_parser, write_figures
from task_sets import prepare_set, read_part
from text_sets import read_jsonl, read_set

NUM_TOP = 10
ENGINES: dict[Precision, EngineName] = {"fp32": "onnx", "bf16": "torch", "int8": "onnx"}


def main() -> None:
    parser = build_parser(__doc__, "precision.json")
    parser.add_argument("--classifier", type=Path, help="a model for SST-2")
    arguments = parser.parse_args()
    sentences = read_set(arguments.data, "short")
    reference: Floats | None = None
    labels: list[str] = []
    rows = []
    for precision, engine in ENGINES.items():
        embedder = load_embedder(find_minilm(), engine, precision, Place.of("cpu", "fp32"))
        vectors = embedder(sentences)
        reference = vectors if reference is None else reference
        cosines = (vectors * reference).sum(axis=1)
        row: dict[str, Any] = {
            "precision": precision,
            "engine": embedder.engine.name,
            "mean_cosine": float(cosines.mean()),
            "lowest_cosine": float(cosines.min()),
            "stsb_spearman": measure_similarity(embedder, arguments.data / "tasks/stsb"),
            "cranfield_ndcg": measure_search(embedder, arguments.data / "retrieval/cranfield"),
        }
        if arguments.classifier is not None:
            found, truth = classify(arguments.classifier, arguments.data, precision)
            labels = labels or found
            row["sst2_accuracy"] = share_of_same(found, truth)
            row["labels_changed"] = 1 - share_of_same(found, labels)
        rows.append(row)
        print(json.dumps(row), flush=True)
    write_figures(arguments.output, results=rows)


def measure_similarity(embedder: Embedder, folder: Path) -> float:
    """Spearman's correlation of cosines with people's scores, on the English test set."""
    with gzip.open(folder / "en/test.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first, second = (embedder([row[name] for row in rows]) for name in ("sentence1", "sentence2"))
    scores = np.array([float(row["score"]) for row in rows])
    return float(spearman((first * second).sum(axis=1), scores))


def measure_search(embedder: Embedder, folder: Path) -> float:
    """nDCG@10 over all queries that have a relevant document."""
    documents, queries = (
        read_texts(folder / name) for name in ("corpus.jsonl.gz", "queries.jsonl")
    )
    relevance: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t"):
            if row[-1].lstrip("-").isdigit():  # else a header
                relevance[row[0]][row[-2]] = int(row[-1])
    names = list(documents)
    scores = embedder(list(queries.values())) @ embedder(list(documents.values())).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :NUM_TOP]
    gains = [
        ndcg([names[index] for index in ranked], relevance[query])
        for query, ranked in zip(queries, best, strict=True)
        if any(value > 0 for value in relevance[query].values())
    ]
    return math.fsum(gains) / len(gains)


def read_texts(path: Path) -> dict[str, str]:
    return {
        str(row["id"]): f"{row.get('title', '')} {row['text']}".strip()
        for row in read_jsonl(path)
        if row["text"].strip()
    }


def ndcg(found: list[str], relevance: Mapping[str, int]) -> float:
    """Discounted gain of what was found, beside that of the best order (Järvelin, Kekäläinen)."""

    def discount(gains: list[int]) -> float:
        return math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(gains))

    ideal = sorted((max(0, value) for value in relevance.values()), reverse=True)[:NUM_TOP]
    return discount([max(0, relevance.get(name, 0)) for name in found]) / discount(ideal)


def classify(folder: Path, data: Path, precision: Precision) -> tuple[list[str], list[str]]:
    """The labels of SST-2's test sentences: found, and given."""
    rows = read_part(prepare_set(data, "sst2", folder), "test")
    classifier = Classifier.load(
        folder, device="cpu", engine=ENGINES[precision], precision=precision
    )
    found = classifier([row["text"] for row in rows])
    return [str(one.label) for one in found], [row["label"] for row in rows]


def share_of_same(first: list[str], second: list[str]) -> float:
    return sum(one == other for one, other in zip(first, second, strict=True)) / len(first)


if __name__ == "__main__":
    main()
