"""What `bertkit finetune` writes, loaded by transformers: of every head the same scores, padded."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.parity.agreement import assert_close
from tests.unit.recipes.finetune.small import make_rows, save_model, write_rows
from torch import Tensor

from bertkit.inference.predictor import Predictor
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify.settings import ClassifySettings
from bertkit.tasks.table import TASKS

SETTINGS = FineTuneSettings(epochs=1, batch_size=4, learning_rate=1e-2, device="cpu")


@dataclass(frozen=True)
class Case:
    """A task's head in transformers.

    Attributes:
        model: transformers' class.
        ending: of the file.
        content: of the file.
        inputs: what is asked of the finished model.
        scores: of what transformers returns: `[sequences, ...]` or `[sequences, length, ...]`.
        is_choice: whether the sequences are choices of one question.
    """

    model: str
    ending: str
    content: str
    inputs: tuple[Any, ...]
    scores: Callable[[Any], Tensor]
    is_choice: bool = False


def in_lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def ask(number: int, answer: str) -> dict[str, Any]:
    context = "the cat saw a dog . a dog lost the hat ."
    found = {"text": answer, "answer_start": context.index(answer)}
    return {
        "title": "t",
        "paragraphs": [
            {
                "context": context,
                "qas": [{"id": str(number), "question": "a cat", "answers": [found]}],
            }
        ],
    }


CASES = {
    "classify": Case(
        "AutoModelForSequenceClassification",
        "csv",
        "text,label\n" + "the cat,x\na dog,y\nthe hat,z\n" * 3,
        ("the cat lost", "a dog", ""),
        lambda output: output.logits,
    ),
    "regress": Case(
        "AutoModelForSequenceClassification",
        "csv",
        "text,label\n" + "the cat,1.5\na dog,-2\nthe hat,0\n" * 3,
        ("the cat lost", "a dog", ""),
        lambda output: output.logits,
    ),
    "tag": Case(
        "AutoModelForTokenClassification",
        "conll",
        "the O\ncats B-PER\nlost O\n\na O\ndog B-LOC\n\n" * 3,
        ("the cats lost a hat", "a dog"),
        lambda output: output.logits,
    ),
    "answer": Case(
        "AutoModelForQuestionAnswering",
        "json",
        json.dumps({"version": "1.1", "data": [ask(1, "a dog"), ask(2, "hat"), ask(3, "cat")]}),
        (("a cat", "the cat saw a dog ."), ("a dog", "the hat . " * 6)),
        lambda output: torch.stack([output.start_logits, output.end_logits], dim=-1),
    ),
    "choose": Case(
        "AutoModelForMultipleChoice",
        "jsonl",
        in_lines(
            *(
                {"context": "the cat", "choices": ["a hat", "the dog saw", "lost"], "label": number}
                for number in (0, 1, 2) * 3
            )
        ),
        ({"context": "the cat", "choices": ["a dog", "the hat saw a dog"]},),
        lambda output: output.logits[0],
        is_choice=True,
    ),
    "extract": Case(
        "AutoModelForTokenClassification",
        "jsonl",
        in_lines(
            *(
                {"text": f"{name} saw. the hat. a hat lost. the.", "summary": name}
                for name in ("the cat", "a dog", "a cat") * 3
            )
        ),
        ("the cat saw a hat. a dog lost. the hat. a dog. the cat saw.", "a dog.", ""),
        lambda output: output.logits,
    ),
}


def test_every_task_is_among_the_cases():
    assert set(TASKS) <= set(CASES)


@pytest.mark.parametrize("name", TASKS)
def test_transformers_computes_the_same_from_the_folder(name, tmp_path, monkeypatch):
    monkeypatch.setattr("bertkit.training.job.measure_peak", lambda *_: 1e11)
    case = CASES[name]
    save_model(tmp_path / "model")
    path = tmp_path / f"train.{case.ending}"
    path.write_text(case.content)
    task_settings = TASKS[name].settings.model_validate(
        {
            "max_length": 20,
            **({"max_question_length": 6, "doc_stride": 4} if name == "answer" else {}),
        }
    )
    output = tmp_path / "out"
    sources = Sources(name, str(tmp_path / "model"), str(path), str(path))
    finetune(sources, output, task_settings, SETTINGS)

    predictor = Predictor.load(output, engine="torch", device="cpu")
    examples = [predictor.task.make_example(value, "here") for value in case.inputs]
    encoded = predictor.task.encode(examples, predictor.loaded.tokenizer)
    ours = [torch.from_numpy(rows) for rows in predictor.logits(encoded)]
    theirs = compute(case, output, encoded, row=predictor.task.row)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)


@torch.no_grad()
def compute(case: Case, folder: Path, encoded: list[Encoded], row: str) -> list[Tensor]:
    """The scores of each example by transformers, a padded batch for each."""
    model, report = getattr(transformers, case.model).from_pretrained(
        folder, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    found = []
    for one in encoded:
        length = max(len(sequence.ids) for sequence in one.sequences)
        padded = {
            "input_ids": [s.ids + [0] * (length - len(s.ids)) for s in one.sequences],
            "token_type_ids": [s.segments + [0] * (length - len(s.ids)) for s in one.sequences],
            "attention_mask": [
                [1] * len(s.ids) + [0] * (length - len(s.ids)) for s in one.sequences
            ],
        }
        tensors = {key: torch.tensor(values) for key, values in padded.items()}
        if case.is_choice:
            tensors = {key: tensor[None] for key, tensor in tensors.items()}
        scores = case.scores(model.eval()(**tensors))
        if row == "token":
            lengths = [len(sequence.ids) for sequence in one.sequences]
            scores = torch.cat([each[:n] for each, n in zip(scores, lengths, strict=True)])
        found.append(scores)
    return found


def test_transformers_cuts_texts_where_fine_tuning_did(tmp_path, monkeypatch):
    monkeypatch.setattr("bertkit.training.job.measure_peak", lambda *_: 1e11)
    save_model(tmp_path / "parent")
    train = write_rows(tmp_path / "train.csv", make_rows(16, 1))
    output = tmp_path / "model"
    sources = Sources("classify", str(tmp_path / "parent"), str(train))
    finetune(sources, output, ClassifySettings(max_length=8), SETTINGS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(output)
    assert tokenizer.model_max_length == 8
    long = "the cat saw a dog . a dog lost the hat"
    (output / "task.json").unlink()  # then the folder is like one of transformers
    classify = Predictor.load(output, device="cpu", engine="torch")
    assert classify.task.settings.max_length == 8
    pipeline = transformers.pipeline("text-classification", str(output), device="cpu", top_k=None)
    (found,) = pipeline([long], truncation=True)
    theirs = {one["label"]: one["score"] for one in found}
    assert classify(long).probabilities == pytest.approx(theirs, abs=1e-5)
    assert classify(long) == classify("the cat saw a dog .")
