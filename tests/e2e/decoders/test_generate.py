"""`bertkit generate` as a user runs it."""

import io
import json
import sys

import pytest
from tests.e2e.small import run
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal

from bertkit.cli.main import main


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "causal"
    save_causal(folder)
    return str(folder)


def test_a_text_is_gone_on_with(causal, capsys):
    words = ["generate", causal, "The cat saw", "--min-tokens", 3, "--max-tokens", 4]
    out, err = run(capsys, *words)
    assert out.startswith("The cat saw")
    assert len(out.split()) > 3
    assert out.count("\n") == 1
    assert err == ""
    assert run(capsys, *words, "--stream")[0] == out


def test_a_terminal_shows_the_text_while_it_is_written(causal, capsys, monkeypatch):
    expected, _ = run(capsys, "generate", causal, "the cat", "--stream")
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", shown)
    assert main(["generate", causal, "the cat"]) == 0
    assert shown.getvalue() == expected
    shown.truncate(0)
    shown.seek(0)
    assert main(["generate", causal, "the cat", "the dog", "--no-stream"]) == 0
    assert shown.getvalue().count("\n") == 2


def test_files_and_pipes_become_json(causal, tmp_path, capsys, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_text("the cat\n\na dog\n")
    words = ["generate", causal, "--json", "--beams", 2, "--num-answers", 2]
    out, err = run(capsys, *words, "--file", path)
    results = [json.loads(line) for line in out.splitlines()]
    assert [one["prompt"] for one in results] == ["the cat", "a dog"]
    assert {*results[0]["answers"][0]} == {
        "text",
        "num_tokens",
        "log_probability",
        "score",
        "is_finished",
    }
    assert err == ""
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run(capsys, *words, "-")[0] == out


def test_a_model_that_reads_both_ways_is_refused(tmp_path, capsys):
    save_small(tmp_path)
    _, err = run(capsys, "generate", tmp_path, "the", code=2)
    assert "is bidirectional" in err
