"""Masked words alone, and the next word left to right, through the command line."""

import json
from pathlib import Path

import pytest
from tests.closeness import close
from tests.e2e.small import pretrain_words, without_precision

import bertkit
from bertkit import BertForMaskedLM, BertLMHeadModel, Generator, Predictor
from bertkit.base.checksummed_json import read_checksummed_json
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.cli.main import main
from bertkit.tokenization.folder import read_max_length
from bertkit.training.log import read_log

STEPS = 80


def begin(workshop: Path, folder: Path, objective: str, *more: str, steps: int = STEPS) -> int:
    return main(pretrain_words(workshop, folder, "--objective", objective, *more, steps=steps))


def go_on(workshop: Path, source: Path, folder: Path, objective: str, *more: str) -> int:
    words = pretrain_words(workshop, folder, "--objective", objective, *more, steps=3)
    place = words.index("--size")
    return main([*words[:place], "--model", str(source), *words[place + 2 :]])


def evaluations(run: Path) -> list[dict]:
    return [row for row in read_log(run / "log.jsonl") if row["event"] == "eval"]


def read_error(capsys: pytest.CaptureFixture[str]) -> str:
    error = without_precision(capsys.readouterr().err)
    assert error.count("\n") == 1
    return error


@pytest.fixture(scope="module")
def causal(workshop, tmp_path_factory):
    run = tmp_path_factory.mktemp("causal") / "run"
    assert begin(workshop, run, "causal") == 0
    return run


@pytest.fixture(scope="module")
def masked(workshop, tmp_path_factory):
    run = tmp_path_factory.mktemp("masked") / "run"
    assert begin(workshop, run, "mlm") == 0
    return run


def test_it_learns_which_word_comes_next(causal):
    first, *_, last = evaluations(causal)
    assert last["clm_loss"] < 0.5 * first["clm_loss"]
    assert last["loss"] == last["clm_loss"]
    assert last["clm_accuracy"] > 0.4
    assert last["clm_perplexity"] == close(2.718281828 ** last["clm_loss"], "float32")
    checkpoint = list_checkpoints(causal)[-1]
    config = json.loads((checkpoint / "config.json").read_text())
    assert (config["architectures"], config["is_decoder"]) == (["BertLMHeadModel"], True)
    settings = read_checksummed_json(causal / "settings.json")["settings"]
    assert settings["objective"] == "causal"
    assert read_max_length(checkpoint) == settings["max_length"] < config["max_position_embeddings"]
    assert Generator.load(causal, device="cpu").loaded.max_length == settings["max_length"]


def test_people_are_told_what_it_learned_and_how_to_try_it(workshop, causal, capsys):
    assert begin(workshop, causal, "causal") == 0  # it is done
    shown = capsys.readouterr()
    assert "next-word accuracy" in shown.out
    assert f"Try: bertkit generate {causal} " in shown.err
    assert main(["inspect", str(causal)]) == 0
    text = capsys.readouterr().out
    assert "left to right" in text
    assert "next-word accuracy" in text
    assert main(["fill-mask", "--model", str(causal), "the [MASK]"]) == 2
    assert "use `bertkit generate` to continue texts" in read_error(capsys)


def test_a_report_shows_how_it_goes_on(workshop, causal, tmp_path, capsys):
    words = ["report", str(causal), "--output", str(tmp_path / "page.html"), "--overwrite"]
    assert main([*words, "--data", str(workshop / "shards"), "--json"]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert run["held_out"].keys() == {
        "loss",
        "clm_accuracy",
        "clm_perplexity",
        "clm_bits_per_character",
    }
    html = (tmp_path / "page.html").read_text()
    assert "The texts are held-out sentences" in html
    assert "Next word, accuracy" in html
    assert "as a left-to-right model" in html
    assert "bertkit generate" in html
    assert main([*words, "--text", "the cat saw"]) == 0
    html = (tmp_path / "page.html").read_text()
    assert "<td>the cat saw</td><td>the red house" in html
    assert main([*words, "--text", "the cat " * 60]) == 2
    assert "shorten it" in read_error(capsys)


def test_runs_that_learn_different_things_are_said_not_to_compare(causal, masked, tmp_path):
    page = tmp_path / "both.html"
    assert main(["report", str(causal), str(masked), "--output", str(page)]) == 0
    assert "have different objectives" in page.read_text()


def test_masked_words_alone(workshop, masked, capsys):
    first, *_, last = evaluations(masked)
    assert last["loss"] == last["mlm_loss"] < first["loss"]
    assert not [name for name in last if name.startswith("nsp")]
    BertForMaskedLM.from_pretrained(masked)
    capsys.readouterr()
    assert main(["fill-mask", "--model", str(masked), "The cat saw the red [MASK]."]) == 0
    capsys.readouterr()
    with pytest.raises(bertkit.BertkitError, match="no pooler and no next_sentence head"):
        bertkit.next_sentence("The cat.", "A dog.", model=masked)
    assert begin(workshop, masked, "mlm") == 0
    assert "next-sentence" not in capsys.readouterr().out


def test_a_bert_is_read_left_to_right(workshop, trained, tmp_path, capsys):
    run = tmp_path / "run"
    assert go_on(workshop, trained, run, "causal") == 0
    error = capsys.readouterr().err
    assert "dropped: pooler, next_sentence of " in error
    assert "was trained in the other direction; it is now left to right" in error
    assert BertLMHeadModel.from_pretrained(run).config.is_decoder


def test_a_left_to_right_model_goes_on_where_it_ended(workshop, causal, tmp_path, capsys):
    run = tmp_path / "run"
    assert go_on(workshop, causal, run, "causal") == 0
    assert "other way" not in capsys.readouterr().err
    first, ended = evaluations(run)[0], evaluations(causal)[-1]
    assert first["loss"] == close(ended["loss"], "float32")


def test_a_left_to_right_model_is_read_both_ways(workshop, causal, tmp_path, capsys):
    assert go_on(workshop, causal, tmp_path / "bert", "bert") == 0
    error = capsys.readouterr().err
    assert "new weights for pooler, next_sentence, which" in error
    assert "it is now" in error
    assert go_on(workshop, causal, tmp_path / "mlm", "mlm") == 0
    assert not BertForMaskedLM.from_pretrained(tmp_path / "mlm").config.is_decoder


def test_what_contradicts_the_objective(workshop, trained, tmp_path, capsys):
    run = tmp_path / "run"
    assert begin(workshop, run, "causal", "--mask-rate", "0.3") == 2
    assert "mask_rate is about masking" in read_error(capsys)
    config = json.loads((workshop / "nano.json").read_text())
    path = tmp_path / "causal.json"
    path.write_text(json.dumps({**config, "is_decoder": True, "type_vocab_size": 1}))
    words = pretrain_words(workshop, run, steps=2)
    words[words.index("--size") + 1] = str(path)
    assert main(words) == 2
    assert "says is_decoder, left to right, and the objective bert" in read_error(capsys)
    words[words.index("bert")] = "causal"
    assert main(words) == 0  # one segment is enough
    capsys.readouterr()
    assert begin(workshop, trained, "causal", steps=200) == 2
    assert "--objective bert → causal" in read_error(capsys)


def test_it_is_fine_tuned_by_its_last_token(causal, tmp_path, capsys):
    rows = [("the cat saw the red house.", "good"), ("a dog found a small boat.", "bad")] * 16
    table = tmp_path / "rows.csv"
    table.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    output = tmp_path / "classifier"
    words = f"finetune classify --model {causal} --train {table} --dev {table} --output {output}"
    more = "--epochs 6 --batch-size 8 --learning-rate 3e-3 --max-length 32 --device cpu"
    assert main([*words.split(), *more.split()]) == 0
    card = (output / "README.md").read_text()
    assert "library_name: bertkit" in card
    assert "the last token represents a text" in card
    assert Predictor.load(output)("a dog found a small boat.").label == "bad"
    capsys.readouterr()
    assert main(["evaluate", str(output), str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["accuracy"] == 1.0
