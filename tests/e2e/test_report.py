"""A real run → a page, through the command line."""

import json
import webbrowser
from shutil import copytree

from tests.e2e.small import pretrain_words

from bertkit.cli.main import main
from bertkit.recipes.pretrain.corpus import Blank


def test_a_run_is_shown_with_blanks_from_its_own_held_out_text(workshop, trained, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", str(trained), "--output", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == str(page)
    [run] = found["runs"]
    assert (run["kind"], run["step"], run["is_finished"]) == ("pretrain", 200, True)
    assert run["held_out"]["mlm_accuracy"] > 0.2
    html = page.read_text()
    assert "The texts are held-out sentences" in html  # the shards lie beside the run
    assert html.count("[MASK]") >= 4
    assert "documents to learn from" in html
    assert main(["report", str(trained), "--output", str(page)]) == 2
    assert "exists; name another file" in capsys.readouterr().err


def test_other_shards_are_refused(workshop, trained, tmp_path, capsys):
    words = f"prepare {workshop}/corpus.txt --tokenizer {workshop}/tokenizer --held-out 0.3"
    assert main([*words.split(), "--output", str(tmp_path / "others"), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["report", str(trained), "--data", str(tmp_path / "others")]) == 2
    assert "wasn't trained on" in capsys.readouterr().err
    assert not (trained / "report.html").exists()


def test_damaged_shards_beside_a_run_cost_what_they_tell_alone(workshop, trained, tmp_path, capsys):
    run, shards = tmp_path / "run", tmp_path / "shards"
    copytree(trained, run)
    copytree(workshop / "shards", shards)
    counts = shards / "token_counts.npy"
    counts.write_bytes(counts.read_bytes()[:-1])
    assert main(["report", str(run)]) == 0
    assert f"leaves out the shards beside the run: {counts}" in capsys.readouterr().err
    assert "Learning rate" in (run / "report.html").read_text()
    assert main(["report", str(run), "--overwrite", "--data", str(shards)]) == 2
    assert str(counts) in capsys.readouterr().err


def test_sentences_too_long_for_the_model_cost_the_examples_alone(trained, tmp_path, monkeypatch):
    long = [Blank("the " * 80 + "[MASK]", "cat")]
    monkeypatch.setattr("bertkit.recipes.pretrain.objective_report.choose_blanks", lambda *_: long)
    page = tmp_path / "page.html"
    assert main(["report", str(trained), "--output", str(page)]) == 0
    assert "There are no examples: " in page.read_text()


def test_two_runs_are_compared_and_the_page_is_opened(workshop, trained, tmp_path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda page: opened.append(page) or True)
    other = tmp_path / "other"
    assert main(pretrain_words(workshop, other, "--seed", "7")) == 0
    page = tmp_path / "both.html"
    assert main(["report", str(trained), str(other), "--output", str(page), "--open"]) == 0
    assert opened == [page.as_uri()]
    html = page.read_text()
    assert "<tr><td>seed</td><td>0</td><td>7</td></tr>" in html
    assert "<tr><td>steps</td><td>200</td><td>12</td></tr>" in html


def test_where_no_browser_is_the_page_is_named(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "open", lambda page: False)
    page = tmp_path / "page.html"
    words = ["report", str(trained), "--examples", "0", "--output", str(page), "--open"]
    assert main(words) == 0
    assert f"no browser was found; open {page}" in capsys.readouterr().err
