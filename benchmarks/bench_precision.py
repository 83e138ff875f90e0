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
from search_sets import NUM_TOP, JudgedSet, ndcg, read_cranfield
from task_sets import prepare_set, read_part
from text_sets import read_set

ENGINES: dict[Precision, EngineName] = {"fp32": "openvino", "bf16": "openvino", "int8": "openvino"}


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
            "cranfield_ndcg": measure_search(embedder, read_cranfield(arguments.data)),
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


def measure_search(embedder: Embedder, judged: JudgedSet) -> float:
    """nDCG@10 over all queries that have a relevant document."""
    names, queries = list(judged.documents), list(judged.queries.values())
    scores = embedder(queries) @ embedder(list(judged.documents.values())).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :NUM_TOP]
    gains = [
        ndcg([names[index] for index in ranked], judged.relevance[query])
        for query, ranked in zip(judged.queries, best, strict=True)
    ]
    return math.fsum(gains) / len(gains)


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
