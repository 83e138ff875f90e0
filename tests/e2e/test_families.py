"""Encoders of each family through the command line, as BERT's: each command on a tiny folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.small import run
from tests.exhaustive import mark_all_but
from tests.families import FAMILIES, make_folder
from tests.parity.test_finetune import CASES, WITH_COMMAND
from tests.wings import needs

from bertkit.tokenization.tokenizer import Tokenizer

TEXT, OTHER = "All human beings are born free.", "人人生而自由,在尊严和权利上一律平等。"
EXACT = ("--precision", "fp32", "--device", "cpu")
SHOWN = ["roberta", "modernbert"]
every_family = pytest.mark.parametrize("family", mark_all_but(SHOWN, FAMILIES))


@every_family
def test_words_are_filled_and_scored(family, tmp_path, capsys):
    model = make_folder(tmp_path / "model", family, "ForMaskedLM")
    mask = Tokenizer.load(model).mask
    blank = TEXT.replace("beings", mask)
    shown, _ = run(capsys, "fill-mask", "--model", model, blank, "--json", *EXACT)
    found = json.loads(shown)
    assert found["text"] == blank
    assert found["blanks"][0][0]["probability"] >= found["blanks"][0][1]["probability"] > 0
    shown, _ = run(capsys, "score", "--model", model, TEXT, OTHER, *EXACT)
    first, second, _ = shown.splitlines()
    assert (first.split("   ")[-1], second.split("   ")[-1]) == (TEXT, OTHER)


@needs("interpret")
@every_family
def test_attention_is_viewed_with_legible_pieces(family, tmp_path, capsys):
    model, page = make_folder(tmp_path / "model", family, "ForMaskedLM"), tmp_path / "page.html"
    mask = Tokenizer.load(model).mask
    blank = TEXT.replace("beings", mask)
    shown, _ = run(capsys, "view", "--model", model, blank, OTHER, "--output", page, *EXACT)
    assert " attends to " in shown
    assert mask.strip("<>[]") in page.read_text()
    if family in ("roberta", "modernbert"):  # whose pieces are bytes
        assert "Ġ" not in shown


@every_family
def test_texts_are_embedded_and_found(family, tmp_path, capsys):
    model, texts = make_folder(tmp_path / "model", family), tmp_path / "texts.txt"
    texts.write_text(f"{TEXT}\n{OTHER}\n", encoding="utf-8")
    vectors = tmp_path / "vectors.npy"
    run(capsys, "embed", "--model", model, texts, "--output", vectors, *EXACT)
    assert np.load(vectors).shape == (2, 24)
    query = "--corpus", texts, "--model", model, OTHER, "--top-k", "1"
    shown, _ = run(capsys, "search", *query, *EXACT)
    assert f"texts.txt:2 {OTHER}" in shown
    shown, _ = run(capsys, "inspect", model)
    assert f"model        {FAMILIES[family].prefix}Model, in {model}" in shown
    assert "problems" not in shown


@needs("serving")
@every_family
@pytest.mark.parametrize("name", mark_all_but(["tag"], WITH_COMMAND))
def test_a_task_is_trained_evaluated_exported_and_served(family, name, tmp_path, capsys):
    from tests.unit.serving.running import running

    case = CASES[name]
    data, model, output = tmp_path / f"data.{case.ending}", tmp_path / "model", tmp_path / "output"
    data.write_text(case.content)
    parent = make_folder(model, family)
    rows = ("--train", data, "--dev", data, "--max-length", "24", "--epochs", "1")
    run(capsys, "finetune", name, "--model", parent, *rows, "--output", output, *EXACT)
    [kind] = json.loads((output / "config.json").read_text())["architectures"]
    assert kind == f"{FAMILIES[family].prefix}{case.model.removeprefix('AutoModel')}"
    shown, _ = run(capsys, "evaluate", output, data, *EXACT)
    assert str(data) in shown
    run(capsys, "convert", output, tmp_path / "converted")
    run(capsys, "export", tmp_path / "converted", "--output", tmp_path / "onnx")
    assert (tmp_path / "onnx" / "onnx" / "model.onnx").exists()
    with running({"mine": str(output)}) as client:
        answer = client.post(f"/v1/models/mine/{name}", {"inputs": [case.inputs[0]]})
    assert answer.status == 200, answer.json


@every_family
def test_encoder_and_reranker_are_trained_to_search(family, tmp_path: Path, capsys):
    parent, data = make_folder(tmp_path / "model", family), tmp_path / "pairs.csv"
    words = ("free", "equal", "born", "human", "rights", "dignity")
    rows = [f"who is {word},all are {word}" for word in words]
    data.write_text("\n".join(["query,passage", *rows]))
    (texts := tmp_path / "texts.txt").write_text(f"{TEXT}\n{OTHER}\n", encoding="utf-8")
    settings = ("--train", data, "--max-length", "24", "--epochs", "1", "--held-out", "0.5")
    encoder, reranker = tmp_path / "encoder", tmp_path / "reranker"
    for name, output in (("embed", encoder), ("rerank", reranker)):
        rest = ("--output", output, *EXACT)
        run(capsys, "finetune", name, "--model", parent, *settings, *rest)
    shown, _ = run(capsys, "similarity", "--model", encoder, TEXT, OTHER, *EXACT)
    assert -1 <= float(shown) <= 1
    shown, _ = run(capsys, "rerank", reranker, "who is free", texts, *EXACT)
    assert TEXT in shown
    assert OTHER in shown
