"""Checkpoints of all kinds through the command line, and into other people's programs."""

import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import close_session, constants
from safetensors.torch import load_file
from tests.closeness import assert_close
from tests.hub_lookalike import COMMIT, HubLookalike, serve
from tests.unit.inference.small import build_sentence_model, save_small

from bertkit import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    Tokenizer,
)
from bertkit.base.checksummed_json import read_checksummed_json
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.cli.main import main

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tensorflow"


@pytest.fixture
def model(tmp_path):
    save_small(tmp_path / "model")
    return tmp_path / "model"


def read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def run_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.mark.parametrize("name", ["", "bert_model.ckpt"])
def test_googles_checkpoint_becomes_a_folder_that_transformers_loads(tmp_path, capsys, name):
    from transformers import BertForPreTraining as TheirModel

    output = tmp_path / "bert-base"
    facts = run_json(["convert", str(GOLDEN / name), str(output)], capsys)
    assert facts["format"] == "tensorflow"
    assert facts["heads"] == ["pooler", "masked_lm", "next_sentence"]
    assert facts["files"]["model.safetensors"]["size_bytes"] > 4 * facts["num_parameters"]
    theirs, info = TheirModel.from_pretrained(output, output_loading_info=True)
    assert not any(info.values())
    ours = BertForPreTraining.from_pretrained(GOLDEN / name)
    ids = torch.arange(1, 11).reshape(2, 5)
    with torch.no_grad():
        words = theirs.eval()(ids).prediction_logits
    assert_close(ours(ids).prediction_logits, words)
    assert Tokenizer.load(output).fingerprint == Tokenizer.load(GOLDEN).fingerprint


def test_what_was_written_is_told_in_a_line_or_two(model, tmp_path, capsys):
    output = tmp_path / "half"
    assert main(["convert", str(model), str(output), "--dtype", "bfloat16"]) == 0
    line, end = capsys.readouterr().out.split("\n")
    assert line.startswith(f"{output}: BertForPreTraining (pooler, masked_lm, next_sentence), ")
    assert "1,737 parameters as bfloat16" in line
    assert end == ""
    tensors = {"bert.embeddings.position_ids": torch.arange(24)[None]}
    tensors |= read_tensors(model)
    (model / "model.safetensors").unlink()
    (model / "vocab.txt").unlink()
    (model / "tokenizer.json").unlink()
    torch.save(tensors, model / "pytorch_model.bin")
    assert main(["convert", str(model), str(tmp_path / "other")]) == 0
    _, dropped, note, _ = capsys.readouterr().out.split("\n")
    assert (
        dropped == "dropped, because they are copies or not weights: bert.embeddings.position_ids"
    )
    assert note.startswith("note: there is no tokenizer")


def test_inspect_tells_people_everything(model, tmp_path, capsys):
    (model / "config.json").write_text(
        json.dumps(json.loads((model / "config.json").read_text()) | {"hidden_size": 10})
    )
    assert main(["inspect", str(model)]) == 0
    text = capsys.readouterr().out
    assert "format       huggingface" in text
    assert "15 entries, uncased" in text
    problems = text[text.index("problems") :].splitlines()
    assert len(problems) == 21
    assert problems[-1].endswith("more; --json has all")
    facts = run_json(["inspect", str(model)], capsys)
    assert len(facts["problems"]) > 20


def test_inspect_tells_people_labels_and_what_makes_a_vector(model, tmp_path, capsys):
    labels = {number: f"kind {number}" for number in range(13)}
    classifier = BertForSequenceClassification.from_pretrained(
        model, new_heads=True, id2label=labels
    )
    classifier.save_pretrained(model)
    linear = classifier.pooler.dense
    write_sentence_model(model, build_sentence_model(linear))
    (model / "vocab.txt").unlink()
    (model / "tokenizer.json").unlink()
    assert main(["inspect", str(model)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line[:13].strip(): line[13:] for line in lines}
    assert rows["labels"].startswith("13: kind 0, kind 1, ")
    assert rows["labels"].endswith("kind 11 and 1 more")
    assert rows["sentences"] == (
        "pooling: mean, dense: 8 → 8, tanh, normalize; texts are cut at 20 tokens"
    )
    assert (rows["prompts"], rows["similarity"]) == ("query: seek: ", "cosine")
    assert "tokenizer" not in rows
    assert len(rows["files"].split()) == 3


def test_what_steers_a_terminal_is_not_printed(model, capsys):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "architectures": ["\x1b[2J\n[red]"]}))
    (model / "model.safetensors").unlink()
    assert main(["inspect", str(model)]) == 0
    shown = "\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}[red], in "
    assert shown in capsys.readouterr().out


def test_the_commands_take_models_of_the_hub(workshop, model, tmp_path, capsys, monkeypatch):
    for name, value in (("HF_HUB_CACHE", tmp_path / "cache"), ("HF_TOKEN_PATH", tmp_path / "no")):
        monkeypatch.setattr(constants, name, str(value))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    tokenizer = Tokenizer.load(workshop / "tokenizer")
    save_small(model, vocab_size=tokenizer.vocab_size, max_position_embeddings=32)
    tokenizer.save(model)
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    with serve(HubLookalike("someone/tiny", files)) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        facts = run_json(["inspect", "someone/tiny", "--revision", "main"], capsys)
        assert (facts["format"], facts["problems"]) == ("huggingface", [])
        convert = ["convert", "someone/tiny", str(tmp_path / "out"), "--revision", "main"]
        assert run_json(convert, capsys)["architecture"] == "BertForPreTraining"
        assert (
            main(["fill-mask", "--model", "someone/tiny", "the [MASK]", "--revision", "main"]) == 0
        )
        prepare = f"prepare {workshop}/corpus.txt --tokenizer someone/tiny --output"
        assert main([*prepare.split(), f"{tmp_path}/shards", "--workers", "1"]) == 0
        pretrain = f"pretrain --model someone/tiny --data {tmp_path}/shards --max-length 32 --steps"
        assert main([*pretrain.split(), "1", "--output", f"{tmp_path}/run"]) == 0
        source = read_checksummed_json(tmp_path / "run" / "settings.json")["source"]
        assert source["commit"] == COMMIT
    close_session()
    expected = BertForPreTraining.from_pretrained(model).state_dict()
    found = BertForMaskedLM.from_pretrained(tmp_path / "out").state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())
    assert BertModel.from_pretrained(tmp_path / "out").new_heads == ()
