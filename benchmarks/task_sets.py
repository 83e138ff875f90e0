"""The labeled sets that the benchmarks of fine-tuning read, from a folder of public data sets.

It has `tasks/` with SST-2 (CSV), CoLA (TSV without a header), RTE-1 to 3 (XML, as distributed),
WNUT-17 (CoNLL) and a sample of SQuAD 1.1 (JSON). What bertkit doesn't read as it is, `prepare_set`
writes as JSONL. RTE has no fixed parts: the test pairs of RTE-3 are the test set here, those of
RTE-2 the dev set, and all others are trained on.
"""

import csv
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

Example = dict[str, Any]
Part = Literal["train", "dev", "test"]

RTE_PARTS: dict[Part, tuple[str, ...]] = {
    "train": ("rte1_dev", "rte1_test", "rte2_dev", "rte3_dev"),
    "dev": ("rte2_test",),
    "test": ("rte3_test",),
}
RTE_LABELS = {
    "TRUE": "entailment",
    "YES": "entailment",
    "FALSE": "not_entailment",
    "NO": "not_entailment",
}
COLA_LABELS = {"0": "unacceptable", "1": "acceptable"}


@dataclass(frozen=True)
class TaskSet:
    """A labeled set, as files that `bertkit finetune` takes.

    Attributes:
        name: a key of `SETS`.
        task: what follows `bertkit finetune`.
        metric: the one that is told.
        epoch_metric: the one that chooses the best epoch.
        parts: the file of each part; the test part may be missing.
        columns: settings of the task that name columns.
    """

    name: str
    task: str
    metric: str
    epoch_metric: str
    parts: dict[Part, Path]
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def flags(self) -> list[str]:
        """The columns, as a command of bertkit takes them."""
        return [f"--{name.replace('_', '-')}={it}" for name, it in self.columns.items()]

    @property
    def reported(self) -> Part:
        """The part whose figures are told: where there is no test set, dev chose the epoch too."""
        return "test" if "test" in self.parts else "dev"


def prepare_set(data: Path, name: str, folder: Path) -> TaskSet:
    """The files of a set; those that have to be written go into `folder`."""
    source = data / "tasks" / name
    if name == "sst2":
        parts = {part: source / f"{part}.csv" for part in RTE_PARTS}
        return TaskSet(name, "classify", "accuracy", "accuracy", parts)
    if name == "wnut17":
        parts = {part: source / f"{part}.conll" for part in RTE_PARTS}
        return TaskSet(name, "tag", "f1", "f1", parts)
    if name == "squad":
        parts = {part: source / f"{part}.json" for part in ("train", "dev")}
        return TaskSet(name, "answer", "f1", "f1", parts)
    folder.mkdir(parents=True, exist_ok=True)
    if name == "cola":
        parts = {
            part: write_jsonl(folder / f"cola-{part}.jsonl", read_cola(source / f"{part}.tsv"))
            for part in ("train", "dev")
        }
        return TaskSet(name, "classify", "matthews", "accuracy", parts)
    parts = {
        part: write_jsonl(folder / f"rte-{part}.jsonl", read_rte(source, files))
        for part, files in RTE_PARTS.items()
    }
    columns = {"text_column": "premise", "pair_column": "hypothesis"}
    return TaskSet(name, "classify", "accuracy", "accuracy", parts, columns)


SETS = ("sst2", "cola", "rte", "wnut17", "squad")


def read_cola(path: Path) -> Iterable[Example]:
    for line in path.read_text("utf-8").splitlines():
        text, label = line.split("\t")
        yield {"text": text, "label": COLA_LABELS[label]}


def read_rte(folder: Path, files: Sequence[str]) -> Iterable[Example]:
    """Pairs of premise and hypothesis; RTE-1 names its labels otherwise than the later ones."""
    for file in files:
        for pair in ET.parse(folder / f"{file}.xml").getroot().iter("pair"):
            label = pair.get("value") or pair.get("entailment") or ""
            texts = {"premise": pair.findtext("t") or "", "hypothesis": pair.findtext("h") or ""}
            yield {**texts, "label": RTE_LABELS[label]}


def write_jsonl(path: Path, examples: Iterable[Example]) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        for example in examples:
            stream.write(json.dumps(example, ensure_ascii=False) + "\n")
    return path


def keep_some(task_set: TaskSet, count: int, seed: int, folder: Path) -> TaskSet:
    """The same set with `count` training examples, drawn by `seed`; for tables with a header."""
    examples = read_part(task_set, "train")
    chosen = random.Random(seed).sample(examples, count)
    path = write_jsonl(folder / f"{task_set.name}-{count}-{seed}.jsonl", chosen)
    return replace(task_set, parts={**task_set.parts, "train": path})


def read_part(task_set: TaskSet, part: Part) -> list[Example]:
    """A part's examples as plain dictionaries, read without bertkit: the peers' side."""
    path = task_set.parts[part]
    if task_set.task == "tag":
        return list(read_conll(path))
    if task_set.task == "answer":
        return list(read_questions(path))
    with path.open(newline="", encoding="utf-8") as stream:
        if path.suffix == ".csv":
            return list(csv.DictReader(stream))
        return [json.loads(line) for line in stream]


def read_conll(path: Path) -> Iterable[Example]:
    rows: list[list[str]] = []
    for line in [*path.read_text("utf-8").split("\n"), ""]:
        if line.strip():
            rows.append(line.split("\t"))
        elif rows:
            tokens, tags = zip(*rows, strict=True)
            yield {"tokens": list(tokens), "tags": list(tags)}
            rows = []


def read_questions(path: Path) -> Iterable[Example]:
    """Questions, each with its paragraph and answers."""
    for article in json.loads(path.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield {"context": paragraph["context"], **question}


def list_gold(task_set: TaskSet, examples: Sequence[Example]) -> list[Any]:
    """What is right: a label, the tags of all words, or all texts that count as right answers."""
    if task_set.task == "tag":
        return [example["tags"] for example in examples]
    if task_set.task == "answer":
        return [[answer["text"] for answer in example["answers"]] for example in examples]
    return [example["label"] for example in examples]
