"""Sets of queries with relevant documents, and how good a ranking of these is.

Cranfield: 1,400 abstracts, 225 queries. SQuAD 1.1: its questions, whose only relevant document is
their paragraph; all paragraphs of the training and dev parts are the documents.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from text_sets import read_jsonl

NUM_TOP = 10
Relevance = Mapping[str, int]  # of documents


@dataclass(frozen=True)
class JudgedSet:
    """Documents and queries by their ids, and the relevance of documents to each query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevance: Mapping[str, Relevance]


def read_cranfield(data: Path) -> JudgedSet:
    """Its queries that have a relevant document."""
    folder = data / "retrieval" / "cranfield"
    relevance: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t"):
            if row[-1].lstrip("-").isdigit():  # else a header
                relevance[row[0]][row[-2]] = int(row[-1])
    documents, queries = (
        read_texts(folder / name) for name in ("corpus.jsonl.gz", "queries.jsonl")
    )
    judged = {name for name, values in relevance.items() if max(values.values()) > 0}
    queries = {name: text for name, text in queries.items() if name in judged}
    return JudgedSet(documents, queries, relevance)


def read_texts(path: Path) -> dict[str, str]:
    return {
        str(row["id"]): f"{row.get('title', '')} {row['text']}".strip()
        for row in read_jsonl(path)
        if row["text"].strip()
    }


def read_squad(data: Path) -> JudgedSet:
    """Both of its parts together."""
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    relevance: dict[str, Relevance] = {}
    for part in ("train", "dev"):
        content = json.loads((data / "tasks" / "squad" / f"{part}.json").read_text("utf-8"))
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                names = {text: name for name, text in documents.items()}
                name = names.get(paragraph["context"], str(len(documents)))
                documents[name] = paragraph["context"]
                for question in paragraph["qas"]:
                    queries[question["id"]] = question["question"]
                    relevance[question["id"]] = {name: 1}
    return JudgedSet(documents, queries, relevance)


def ndcg(found: Sequence[str], relevance: Relevance) -> float:
    """Discounted gain of the ten best, beside that of the best order (Järvelin, Kekäläinen)."""

    def discount(gains: list[int]) -> float:
        return math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(gains))

    ideal = sorted((max(0, value) for value in relevance.values()), reverse=True)[:NUM_TOP]
    gains = [max(0, relevance.get(name, 0)) for name in found[:NUM_TOP]]
    return discount(gains) / discount(ideal)


def recall(found: Sequence[str], relevance: Relevance) -> float:
    """Which share of the relevant documents is among the ten best."""
    relevant = {name for name, value in relevance.items() if value > 0}
    return len(relevant.intersection(found[:NUM_TOP])) / len(relevant)
