"""An exported model runs without bertkit and gives what bertkit gives."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import build_sentence_model, save_small
from tests.unit.inference.small_task import save_classifier, save_tagger
from transformers import AutoTokenizer

from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.cli.main import main
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.models.bert.encoder import BertModel

TEXTS = ["the cat saw a hat .", "a dog", "the dogs lost the hat - the cats saw a dog"]


def run(folder: Path, texts: list[str]) -> dict[str, np.ndarray]:
    """As somebody would who has transformers' tokenizer and ONNX Runtime, and no torch."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="np")
    session = onnxruntime.InferenceSession(folder / "onnx/model.onnx")
    names = [output.name for output in session.get_outputs()]
    feeds = {name: value.astype(np.int64) for name, value in inputs.items()}
    return dict(zip(names, session.run(names, feeds), strict=True)) | {
        "mask": feeds["attention_mask"]
    }


@pytest.fixture
def model(tmp_path):
    save_small(tmp_path / "model")
    return tmp_path / "model"


def test_others_get_our_hidden_states(model, tmp_path, capsys):
    output = tmp_path / "exported"
    assert main(["export", str(model), "--encoder-only", "--output", str(output), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["outputs"] == ["last_hidden_state", "pooler_output"]
    assert (
        facts["files"]["onnx/model.onnx"]["size_bytes"]
        == (output / "onnx/model.onnx").stat().st_size
    )
    tokenizer = AutoTokenizer.from_pretrained(output)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    found = run(output, TEXTS)
    expected = BertModel.from_pretrained(model)(**inputs)
    real = inputs["attention_mask"].bool()
    states = torch.from_numpy(found["last_hidden_state"])
    assert_close(states[real], expected.last_hidden_state[real], within=1e-4)
    pooled = torch.from_numpy(found["pooler_output"])
    assert_close(pooled, expected.pooler_output, within=1e-4)


def test_others_get_our_vectors_of_sentences(model, tmp_path, capsys):
    linear = torch.nn.Linear(8, 8)
    write_sentence_model(model, build_sentence_model(linear))
    output = tmp_path / "exported"
    assert main(["export", str(model), "--output", str(output)]) == 0
    line, note, _ = capsys.readouterr().out.split("\n")
    assert line.startswith(
        f"{output}: onnx, fp32; outputs last_hidden_state, pooler_output, sentence_emb"
    )
    assert note.startswith("note: BertModel was exported, without masked_lm")
    expected = Embedder.load(model)(TEXTS)
    assert_close(run(output, TEXTS)["sentence_embedding"], expected, within=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_exported_folder_answers_as_its_model_does(tmp_path, capsys, precision):
    for save, task, texts in (
        (save_classifier, "classify", ["the cat saw a hat .", "a dog"]),
        (save_tagger, "tag", ["the cat saw a hat .", "a dog"]),
    ):
        source, output = save(tmp_path / task), str(tmp_path / f"{task}-onnx")
        command = ["export", source, "--output", output, "--precision", precision]
        assert main(command) == 0
        capsys.readouterr()
        answers = []
        for folder in (source, output):
            assert main([task, folder, *texts, "--json"]) == 0
            answers.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
        if precision == "fp32":
            assert answers[0] == answers[1]
        assert len(answers[1]) == len(texts)
        task_file = (Path(source) / "task.json").read_bytes()
        assert (Path(output) / "task.json").read_bytes() == task_file


def test_blanks_are_filled_from_an_exported_folder(model, tmp_path, capsys):
    output = tmp_path / "exported"
    assert main(["export", str(model), "--output", str(output)]) == 0
    capsys.readouterr()
    answers = []
    for folder in (model, output):
        assert main(["fill-mask", "--model", str(folder), "the [MASK] saw a hat", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    (ours,), (exported,) = (answer.pop("blanks") for answer in answers)
    for one, other in zip(ours, exported, strict=True):
        assert one.pop("probability") == close(other.pop("probability"), "float32")
        assert one == other
    assert answers[0] == answers[1]
