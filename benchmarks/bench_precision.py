"""What a precision costs in quality.

    python benchmarks/bench_precision.py --data data/ --sst2 sentiment/ --wnut17 names/

all-MiniLM-L6-v2 on a CPU, in float32 and in each reduced precision: the mean and the lowest cosine
to the float32 vector of 2,000 sentences, Spearman's correlation on STS-B's test set, nDCG@10 on
Cranfield; of models that `bertkit finetune` made for SST-2 and WNUT-17, accuracy and F1 of entities
on the test set, and the fraction of the predicted labels that change.
"""

import csv
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.predictor import AnyPredictor, Predictor
from bertkit.inference.settings import Precision
from bertkit.tasks.metrics.correlation import spearman
from devices import Place
from embedding_peers import Floats, load_embedder
from minilm import find_minilm
from program import build_parser, write_figures
from search_sets import NUM_TOP, JudgedSet, ndcg, read_cranfield
from task_metrics import measure
from task_sets import Example, TaskSet, list_gold, prepare_set, read_part
from text_sets import read_set

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
TUNED = ("sst2", "wnut17")


def main() -> None:
    parser = build_parser(__doc__, "precision.json")
    for name in TUNED:
        parser.add_argument(f"--{name}", type=Path, help="a model that was fine-tuned for it")
    arguments = parser.parse_args()
    sentences = read_set(arguments.data, "short")
    reference: Floats | None = None
    first: dict[str, list[Any]] = {}  # predictions in float32, by set
    rows = []
    for precision in PRECISIONS:
        embedder = load_embedder(find_minilm(), "auto", precision, Place.of("cpu", "fp32"))
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
        for name in TUNED:
            if (folder := getattr(arguments, name)) is not None:
                task_set = prepare_set(arguments.data, name, folder)
                examples = read_part(task_set, task_set.reported)
                found = predict(folder, task_set, examples, precision)
                metrics = measure(task_set.task, list_gold(task_set, examples), found)
                row[f"{name}_{task_set.metric}"] = metrics[task_set.metric]
                usual = first.setdefault(name, found)
                row[f"{name}_changed"] = share_of_changed(usual, found)
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


def predict(
    folder: Path, task_set: TaskSet, examples: Sequence[Example], precision: Precision
) -> list[Any]:
    """The label of each text, or the tags of its words."""
    predictor: AnyPredictor = Predictor.load(folder, device="cpu", precision=precision)
    if task_set.task == "tag":
        return [list(one.tags) for one in predictor([tuple(one["tokens"]) for one in examples])]
    return [one.label for one in predictor([one["text"] for one in examples])]


def share_of_changed(first: list[Any], second: list[Any]) -> float:
    """The fraction of labels, or of tags, that differ."""
    return float(np.mean(np.hstack(first) != np.hstack(second)))


if __name__ == "__main__":
    main()
