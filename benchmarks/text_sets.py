"""The real texts that the benchmarks of inference read, from a folder of public data sets.

It has `tasks/sst2/train.csv` (Socher et al. 2013), `tasks/squad/{dev,train}.json` (SQuAD v1.1)
and `corpus/news/*.txt.gz` (a paragraph a line, a blank line between documents).
"""

import csv
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertkit.data.sentences import split_sentences

NUM_SHORT, NUM_PARAGRAPHS = 2_000, 400
NUM_MIXED = {"short": 1_600, "paragraphs": 200}
NEWS_CHARACTERS = range(400, 2_001)
SENTENCE_CHARACTERS = range(20, 401)
SEED = 0


def read_set(data: Path, name: str) -> list[str]:
    """A set by its name.

    - `short`: sentences of film reviews;
    - `paragraphs`: all distinct paragraphs of SQuAD, filled up with whole news documents;
    - `mix`: some of either, shuffled.
    """
    if name == "short":
        return read_reviews(data)[:NUM_SHORT]
    if name == "paragraphs":
        paragraphs = [*dict.fromkeys(read_squad(data))]
        news = (text for text in read_news(data) if len(text) in NEWS_CHARACTERS)
        paragraphs += [text for text, _ in zip(news, range(NUM_PARAGRAPHS), strict=False)]
        return paragraphs[:NUM_PARAGRAPHS]
    mixed = [text for part, count in NUM_MIXED.items() for text in read_set(data, part)[:count]]
    random.Random(SEED).shuffle(mixed)
    return mixed


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    text = read_gzip(path) if path.suffix == ".gz" else path.read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def read_gzip(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8")


def read_reviews(data: Path) -> list[str]:
    return [text for text, _ in read_labeled_reviews(data, "train")]


def read_labeled_reviews(data: Path, part: str) -> list[tuple[str, str]]:
    """Return (sentence, label) of a part of SST-2."""
    with (data / "tasks" / "sst2" / f"{part}.csv").open(newline="", encoding="utf-8") as stream:
        return [(row["text"], row["label"]) for row in csv.DictReader(stream)]


def read_squad(data: Path) -> Iterator[str]:
    """The paragraphs of SQuAD, dev first."""
    for part in ("dev", "train"):
        content = json.loads((data / "tasks" / "squad" / f"{part}.json").read_text("utf-8"))
        for article in content["data"]:
            yield from (paragraph["context"] for paragraph in article["paragraphs"])


def read_news(data: Path) -> Iterator[str]:
    """News documents, each as one line."""
    for path in sorted((data / "corpus" / "news").glob("*.txt.gz")):
        for document in read_gzip(path).split("\n\n"):
            yield " ".join(document.split())


def read_masked(data: Path, count: int, mask: str) -> list[str]:
    """Sentences of the news in random order, one random word of each hidden."""
    sentences = [
        sentence
        for document in read_news(data)
        for sentence in split_sentences(document)
        if len(sentence) in SENTENCE_CHARACTERS
    ]
    generator = random.Random(SEED)
    masked = []
    for sentence in generator.sample(sentences, count):
        words = sentence.split(" ")
        words[generator.randrange(len(words))] = mask
        masked.append(" ".join(words))
    return masked
