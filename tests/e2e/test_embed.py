"""`bertkit embed` as a user runs it."""

import io
import json
import sys

import numpy as np
import pytest
from tests.closeness import close
from tests.e2e.small import run as run_command

from bertkit.base.checksummed_json import read_checksummed_json

TEXTS = ["the cat saw a dog .", "", "a hat", "zebra", "the dog lost the hat " * 9]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    return run_command(capsys, "embed", *words, "--engine", "torch", code=code)


def test_a_file_of_texts_becomes_a_file_of_vectors(model, texts, tmp_path, capsys):
    output = tmp_path / "vectors.npy"
    out, err = run(capsys, "--model", model, texts, "--output", output)
    summary = f"5 texts → {output} [5, 8], "
    assert out.startswith(summary)
    problems = "1 empty, 1 with unknown words only, 1 truncated to 24 tokens"
    assert (
        f"; {problems}, 1 of 54 tokens (1.9 %) is not in the vocabulary and is read as unknown"
        in out
    )
    assert " per second; " in out
    search = f'search --model {model} "the cat saw a dog ." --corpus {texts} --engine torch'
    assert err == f"Try: bertkit {search}\n"
    assert np.load(output, mmap_mode="r").shape == (5, 8)
    assert read_checksummed_json(tmp_path / "vectors.npy.json")["counts"]["texts"] == 5
    again, _ = run(capsys, "--model", model, texts, "--output", output)
    assert again.startswith(summary)
    assert ", already done; 1 empty" in again


def test_without_an_output_lines_go_to_standard_output(model, texts, capsys, monkeypatch):
    def give() -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(texts.read_bytes())))

    give()
    out, err = run(capsys, "--model", model, "-", "--normalize")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["row"] for row in rows] == list(range(5))
    assert np.linalg.norm(rows[0]["embedding"]) == close(1.0, "float32")
    assert err.startswith("5 texts → standard output [5, 8], ")
    give()
    again, err = run(capsys, "--model", model, "-", "--normalize", "--json")
    assert again == out
    facts = json.loads(err)
    assert (facts["output"], facts["num_rows"]) == (None, 5)


def test_rows_before_one_that_cannot_be_read_are_printed(model, tmp_path, capsys):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "cat"}\n{"body": "cat"}\n')
    out, err = run(capsys, "--model", model, broken, code=2)
    assert json.loads(out)["row"] == 0
    assert err.endswith("broken.jsonl, row 2 has no field text; it has body\n")
    run(capsys, "--model", model, broken, "--output", tmp_path / "v.npy", code=2)
    assert list(tmp_path.iterdir()) == [broken]  # another input can't go on with it
    broken.write_text('{"text": "cat"}\n{"text": "dog"}\n')
    run(capsys, "--model", model, broken, "--output", tmp_path / "v.npy")
    assert np.load(tmp_path / "v.npy").shape == (2, 8)
