"""Small data sets of our own, laid out like the public ones that benchmarks read."""

import csv
import gzip
import io
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.e2e.small import OBJECTS, SUBJECTS, VERBS

NUM_EXAMPLES = {"train": 48, "dev": 16, "test": 16}
RTE_FILES = ("rte1_dev", "rte1_test", "rte2_dev", "rte2_test", "rte3_dev", "rte3_test")
LABELS = ("negative", "positive")


def write_benchmark_data(data: Path) -> None:
    """Write each set that a benchmark reads."""
    for seed, (part, count) in enumerate(NUM_EXAMPLES.items()):
        write_part(data / "tasks", part, [*islice(draw_sentences(seed), count)])
    sentences = draw_sentences(3)
    for name in RTE_FILES:
        pairs = [
            f'<pair value="{value}"><t>{next(sentences)}</t><h>{next(sentences)}</h></pair>'
            for value in ("YES", "NO") * 8
        ]
        write(data / "tasks" / "rte" / f"{name}.xml", f"<corpus>{''.join(pairs)}</corpus>")
    write_inference_sets(data)


def draw_sentences(seed: int) -> Iterator[str]:
    """Sentences without end, few of them alike."""
    choose = random.Random(seed).choice
    while True:
        parts = (choose(words) for words in (SUBJECTS, VERBS, OBJECTS, VERBS, SUBJECTS))
        yield "{} {} {} and {} {}".format(*parts)


def write_part(tasks: Path, part: str, sentences: list[str]) -> None:
    """One part of each set for fine-tuning, of the same sentences."""
    rows = [[text, LABELS[number % 2]] for number, text in enumerate(sentences)]
    write(tasks / "sst2" / f"{part}.csv", list_rows(["text", "label"], *rows))
    lines = [f"{text}\t{number % 2}\n" for number, text in enumerate(sentences)]
    write(tasks / "cola" / f"{part}.tsv", "".join(lines))
    tagged = ["".join(f"{word}\t{tag_word(word)}\n" for word in text.split()) for text in sentences]
    write(tasks / "wnut17" / f"{part}.conll", "\n".join(tagged))
    questions = [
        {"id": f"{part}-{number}", "question": "who was it?", "answers": [find_answer(text)]}
        for number, text in enumerate(sentences)
    ]
    paragraphs = [
        {"context": text, "qas": [question]}
        for text, question in zip(sentences, questions, strict=True)
    ]
    content = {"version": "1.1", "data": [{"title": part, "paragraphs": paragraphs}]}
    write(tasks / "squad" / f"{part}.json", json.dumps(content))


def tag_word(word: str) -> str:
    """Persons are tagged."""
    return "B-person" if word in ("captain", "doctor", "friend", "sister") else "O"


def find_answer(text: str) -> dict[str, object]:
    """The last word."""
    word = text.rsplit(maxsplit=1)[-1]
    return {"text": word, "answer_start": len(text) - len(word)}


def write_inference_sets(data: Path) -> None:
    """Texts without labels, pairs and judgments."""
    sentences = draw_sentences(5)
    documents = ["\n".join(f"{text}." for text in islice(sentences, 6)) for _ in range(40)]
    write(data / "corpus" / "news" / "news.txt.gz", "\n\n".join(documents))
    for name in ("train.de", "train.en", "test_2016_flickr.de"):
        lines = "\n".join(islice(sentences, 80))
        write(data / "parallel" / "multi30k" / f"{name}.gz", lines + "\n")
    pairs = [{"sentence_good": next(sentences), "sentence_bad": next(sentences)} for _ in range(4)]
    write(data / "tasks" / "blimp" / "pairs.jsonl.gz", list_json(pairs))
    rows = [[next(sentences), next(sentences), f"{number}.0"] for number in range(5)]
    table = list_rows(["sentence1", "sentence2", "score"], *rows)
    write(data / "tasks" / "stsb" / "en" / "test.csv.gz", table)
    cranfield = data / "retrieval" / "cranfield"
    texts = [{"id": str(number), "title": "", "text": next(sentences)} for number in range(12)]
    write(cranfield / "corpus.jsonl.gz", list_json(texts))
    write(cranfield / "queries.jsonl", list_json(texts[:2]))
    write(cranfield / "qrels.tsv", "query-id\tcorpus-id\tscore\n0\t0\t1\n1\t1\t1\n")


def list_rows(*rows: list[str]) -> str:
    """A table as CSV."""
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def list_json(rows: list[dict[str, str]]) -> str:
    """An object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, text: str) -> None:
    """Write a file with its folders, packed where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
