"""A sixth task is a class and a line: its commands and its predictor follow from them.

The toy counts the animals of a text, from 0 to 3, with the classifier's head.
"""

import json
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
import torch.nn.functional as F
from tests.unit.recipes.finetune.small import save_model

from bertkit.cli.main import main
from bertkit.inference.predictor import Predictor
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.tasks import table
from bertkit.tasks.batch import Encoded
from bertkit.tasks.columns import take_label
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import Evaluation, Task, TaskPrediction
from bertkit.tasks.texts import TextExample, Texts, build_text_parser, encode_texts
from bertkit.training.job import Scores

MOST = 3


@dataclass(frozen=True)
class CountExample(TextExample):
    texts: Texts
    number: int | None = None
    place: str = ""

    @classmethod
    def build_parser(cls, settings, table, *, needs_answer):
        parse = build_text_parser(settings, table)
        return lambda record: cls(
            parse(record),
            int(take_label(record, "number")) if needs_answer else None,
            record.place,
        )


@dataclass(frozen=True)
class NumberOfAnimals(TaskPrediction):
    number: int

    def describe(self):
        return f"{self.number} animals"


class CountSettings(TextSettings):
    """The column `text` is read, and `number`."""


class Count(Task[CountExample, NumberOfAnimals]):
    name, example_kind, model_kind = "count", CountExample, BertForSequenceClassification
    row, metric = "sequence", "accuracy"
    config_changes = MappingProxyType({"num_labels": MOST + 1})

    @classmethod
    def from_examples(cls, settings, examples):
        return cls(settings)

    @classmethod
    def from_config(cls, settings, config, numbers):
        return cls(settings)

    def encode(self, examples, tokenizer):
        readings = encode_texts([example.texts for example in examples], self.settings, tokenizer)
        return [
            Encoded(
                reading.sequences,
                None if example.number is None else np.array([example.number]),
            )
            for example, reading in zip(examples, readings, strict=True)
        ]

    def loss(self, logits, batch):
        return Scores({"task": F.cross_entropy(logits, batch.labels, reduction="sum")}, {})

    def decode(self, example, encoded, logits):
        return NumberOfAnimals(int(logits[0].argmax()))

    def measure(self, examples, predictions):
        hits = [
            example.number == found.number
            for example, found in zip(examples, predictions, strict=True)
        ]
        return {"accuracy": sum(hits) / len(hits)}

    def evaluate(self, examples, predictions):
        return Evaluation(self.measure(examples, predictions))


@pytest.fixture(autouse=True)
def _sixth(monkeypatch):
    """The line."""
    entry = table.TaskEntry(CountSettings, "Count the animals.", f"{__name__}:Count")
    monkeypatch.setitem(table.TASKS, "count", entry)


def write_table(path, num_rows):
    rows = []
    for number in range(num_rows):
        words = ["the", "cat", "a", "cat", "saw", "cat"]
        kept = [
            word for place, word in enumerate(words) if word != "cat" or number >> place // 2 & 1
        ]
        rows.append(f"{' '.join(kept)},{Counter(kept)['cat']}")
    path.write_text("\n".join(["text,number", *rows]) + "\n")
    return path


def test_it_is_trained_evaluated_and_used_by_its_name(tmp_path, capsys):
    save_model(tmp_path / "model")
    data = write_table(tmp_path / "data.csv", 64)
    output = tmp_path / "counter"
    words = (
        f"finetune count --model {tmp_path}/model --train {data} --dev {data} --output {output}"
        " --max-length 16 --epochs 20 --batch-size 16 --learning-rate 1e-2 --dropout 0 --device cpu"
    )
    assert main(words.split()) == 0
    assert "accuracy 100.0 %" in capsys.readouterr().out
    assert json.loads((output / "task.json").read_text())["task"] == "count"

    assert main(["count", str(output), "the cat saw a cat", "a", "--engine", "torch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["2 animals", "0 animals"]
    assert main(["count", str(output), "the cat a saw", "--json", "--engine", "torch"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": 1, "number": 1}
    assert main(["evaluate", str(output), str(data), "--json", "--engine", "torch"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == {"accuracy": 1.0}

    predictor = Predictor.load(output, device="cpu", engine="torch")
    assert predictor(["the cat a cat saw cat", "the a saw"]) == [
        NumberOfAnimals(3),
        NumberOfAnimals(0),
    ]
    assert main(["classify", str(output), "the cat"]) == 2
    assert "is a model for the task count; use `bertkit count`" in capsys.readouterr().err


def test_its_commands_are_in_the_help(capsys):
    for words in (["--help"], ["finetune", "--help"]):
        assert main(words) == 0
        assert "Count the animals." in " ".join(capsys.readouterr().out.split())
    assert main(["finetune", "count", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--max-length" in shown
    assert "bertkit finetune count --model bert/ --train train.csv" in " ".join(shown.split())
