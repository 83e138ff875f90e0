"""`bertkit features` and `nearest` as a user runs them."""

import io
import json
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.e2e.small import run

TEXTS = ["the cat saw a dog .", "", "zebra", "the dog lost the hat " * 9]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


def test_features_go_to_standard_output_and_their_summary_beside(model, texts, capsys):
    words = f"features {texts} --model {model} --layers -1 -2 --engine torch".split()
    out, err = run(capsys, *words)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["row"] for line in lines] == [0, 1, 2, 3]
    assert np.shape(lines[0]["features"]) == (8, 16)
    assert err.startswith("4 texts → standard output, 37 tokens [16] of layer 2, 1 (concat), C fro")
    assert " C from pooler, " in err
    assert "; 1 empty, 1 with unknown words only, 1 truncated to 24 tokens" in err
    with_flags, _ = run(capsys, *words[:4], "--layers", -1, "--layers", -2, "--engine", "torch")
    assert with_flags == out


def test_features_become_a_file(model, texts, tmp_path, capsys):
    output = tmp_path / "features.parquet"
    command = ["features", "--model", model, texts, "--output", output, "--engine", "torch"]
    out, err = run(capsys, *command, "--json")
    facts = json.loads(out)
    assert err == ""
    assert facts["output"] == str(output)
    assert facts["counts"]["tokens"] == 37
    assert facts["shape"] == [16]
    assert facts["identity"]["sequence_from"] == "pooler"
    assert facts["tokens_per_second"] > 0
    assert pq.read_table(output).num_rows == 4
    assert run(capsys, *command, code=2)[1] == (
        f"bertkit: {output} exists; name another file, or replace it by --overwrite\n"
    )
    assert run(capsys, *command, "--overwrite")[0].startswith(f"4 texts → {output}, 37 tokens [16]")


def test_features_of_other_inputs_and_layouts(model, tmp_path, capsys, monkeypatch):
    table = tmp_path / "texts.csv"
    table.write_text("id,body\n1,a hat ||| the cat\n")
    words = f"features {table} --model {model} --text-column body --combine none --layers 0".split()
    words += ["--pair-separator", " ||| ", "--output-format", "google", "--engine", "torch"]
    out, _ = run(capsys, *words)
    assert [each["token"] for each in json.loads(out)["features"]] == [
        *["[CLS]", "a", "hat", "[SEP]", "the", "cat", "[SEP]"]
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a hat\nthe cat")))
    out, err = run(capsys, "features", "--model", model, "-", "--engine", "torch", "--json")
    assert len(out.splitlines()) == json.loads(err)["counts"]["texts"] == 2
    assert json.loads(err)["output"] is None


def test_neighbors_are_listed(model, capsys):
    nearest = ["nearest", "--model", model]
    out, err = run(capsys, *nearest, "cat", "cats", "--top-k", 3)
    lines = out.splitlines()
    assert [len(lines), lines[0], lines[4]] == [9, "cat", "cats"]
    assert lines[5] == "  cats is the mean of cat ##s"
    summed = run(capsys, *nearest, "cat + dog - hat", "--top-k", 2)[0].splitlines()
    assert (summed[0], len(summed)) == ("cat + dog - hat", 3)
    assert [len(line.split()) for line in (*lines[1:4], *lines[6:])] == [2] * 6
    assert not any(line.split()[-1].startswith(("##", "[")) for line in lines[6:])
    assert err == ""
    words = ["nearest", "--model", model, "cat", "--layer", -1, "--engine", "torch", "--json"]
    found = json.loads(run(capsys, *words)[0])
    assert found["layer"] == 2
    assert len(found["neighbors"]) == 8
    assert found["plus"] == [{"word": "cat", "pieces": ["cat"], "token_ids": [7]}]
    mended = run(capsys, "nearest", "--model", model, "cat\udcff", "--json")[0]
    assert json.loads(mended)["plus"][0]["word"] == "cat\ufffd"
