"""One more task is four small classes and a line: this one counts the animals of a text."""

import json
from dataclasses import dataclass

import numpy as np
from tests.unit.recipes.finetune.small import save_model

import bertkit
from bertkit.cli.main import main
from bertkit.tasks.batch import Encoded
from bertkit.tasks.evaluation import TaskScoring
from bertkit.tasks.table import TASKS, TaskEntry
from bertkit.tasks.task import Task, TaskPrediction
from bertkit.tasks.texts import TextExample, Texts, build_text_parser, encode_texts


@dataclass(frozen=True)
class CountExample(TextExample):
    texts: Texts
    number: int | None = None
    place: str = ""

    @classmethod
    def build_parser(cls, settings, table, *, needs_answer):
        parse, column = build_text_parser(settings, table), "number" if needs_answer else None
        return lambda row: cls(parse(row), column and int(row.values[column]), row.place)


@dataclass(frozen=True)
class AnimalCount(TaskPrediction):
    number: int

    def describe(self):
        return f"{self.number} animals"


class CountScoring(TaskScoring):
    @property
    def metrics(self):
        pairs = zip(self.examples, self.predictions, strict=True)
        return {"accuracy": np.mean([one.number == found.number for one, found in pairs])}


class Count(Task):
    name, architecture = "count", "BertForSequenceClassification"
    example_kind, score = CountExample, CountScoring
    config_changes = {"num_labels": 4}  # noqa: RUF012

    def encode(self, examples, tokenizer):
        readings = encode_texts([example.texts for example in examples], self.settings, tokenizer)
        labels = [None if one.number is None else np.array([one.number]) for one in examples]
        return [Encoded(one.sequences, own) for one, own in zip(readings, labels, strict=True)]

    def decode(self, example, encoded, logits):
        return AnimalCount(int(logits[0].argmax()))


def test_it_is_trained_evaluated_and_used_by_its_name(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(
        TASKS,
        "count",
        TaskEntry("bertkit.tasks.settings:TextSettings", "Count.", f"{__name__}:Count"),
    )
    output, data = tmp_path / "counter", tmp_path / "data.csv"
    data.write_text("text,number\n" + "".join(f"the saw a{' cat' * n},{n}\n" for n in range(4)))
    save_model(tmp_path / "model")
    words = f"finetune count --model {tmp_path}/model --train {data} --dev {data} --output {output}"
    fast = " --max-length 16 --epochs 60 --batch-size 4 --learning-rate 1e-2 --dropout 0"
    assert main((words + fast).split()) == 0
    assert main(["count", str(output), "the cat saw a cat", "--engine", "torch"]) == 0
    assert "\n2 animals\tthe cat saw" in capsys.readouterr().out
    assert main(["evaluate", str(output), str(data), "--json", "--engine", "torch"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == {"accuracy": 1.0}
    assert bertkit.Predictor.load(output, device="cpu", engine="torch")("a saw") == AnimalCount(0)
    rows = {"train": data, "dev": data, "model": tmp_path / "model"}
    assert type(bertkit.finetune("count", **rows, epochs=1, max_length=16)) is bertkit.Predictor
    assert main(["finetune", "count", "--help"]) == 0
    assert "bertkit finetune count --model" in " ".join(capsys.readouterr().out.split())
    assert main(["classify", str(output), "the cat"]) == 2
    assert "is a model for the task count; use `bertkit count`" in capsys.readouterr().err
