"""Studies from the command line: tiny runs on text of our own."""

import json
import random
import re
from pathlib import Path

import pytest
from tests.closeness import close

from bertkit.checkpoints.formats import hash_files, open_checkpoint
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.cli.main import main
from bertkit.training.record import STATE_FILE
from bertkit.training.run import Run
from bertkit_studies.experiments.bidirectional import Bidirectional
from bertkit_studies.experiments.next_sentence import NextSentence
from bertkit_studies.experiments.steps import Steps
from bertkit_studies.probes import pretrained_arms
from bertkit_studies.probes.downstream import TaskTuning
from bertkit_studies.probes.pretrained_arms import PretrainedArm, PretrainingScale
from bertkit_studies.probes.probes import GAPS_PROBE, PAIRS_PROBE
from bertkit_studies.study import Decision

PEOPLE = ("the cat", "a dog", "my sister", "the captain", "her friend", "the doctor")
DEEDS = ("saw a boat", "found the key", "left the house", "lost his hat", "sang a song")
SMALLEST = PretrainingScale(
    {"size": "tiny", "max_length": 32, "batch_size": 4, "eval_examples": 8},
    tokens=1_000,
    fine_tuning=TaskTuning(num_train=24, num_dev=24, learning_rate=1e-3, epochs=1.0, batch_size=8),
)


def write_told(path: Path, num_documents: int) -> None:
    """Documents that each tell of one hero."""
    choose = random.Random(0)
    documents = []
    for _ in range(num_documents):
        hero = choose.choice(PEOPLE)
        sentences = [
            f"In the morning, {hero} {choose.choice(DEEDS)}, and {choose.choice(DEEDS)}."
            for _ in range(8)
        ]
        documents.append("\n".join(sentences))
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    write_told(folder / "corpus.txt", 120)
    words = f"train-tokenizer {folder}/corpus.txt --vocab-size 120 --output {folder}/tokenizer"
    assert main(words.split()) == 0
    words = (
        f"prepare {folder}/corpus.txt --tokenizer {folder}/tokenizer --output {folder}/shards"
        " --held-out 0.3 --workers 1"
    )
    assert main(words.split()) == 0
    return folder / "shards"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setitem(pretrained_arms.SCALES, "small", SMALLEST)
    monkeypatch.setattr(Steps, "scales", pretrained_arms.SCALES)


def run(shards: Path, output: Path, name: str, *more: str) -> int:
    words = ["study", name, "--data", str(shards), "--output", str(output), "--device", "cpu"]
    return main([*words, "--seeds", "1", *more])


def read_metric(folder: Path) -> float:
    """The figure of a fine-tuning, where that left it."""
    saved = json.loads((folder / "metrics.json").read_text("utf-8"))
    return saved["metrics"][saved["metric"]]


def test_a_study_is_run_told_and_kept(shards, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(NextSentence, "probes", (PAIRS_PROBE,))
    labeled = tmp_path / "labeled.csv"
    rows = [f"{hero} {DEEDS[number % 5]},{number % 2}" for number, hero in enumerate(PEOPLE * 8)]
    labeled.write_text("text,label\n" + "\n".join(rows) + "\n")
    output, more = tmp_path / "study", ("--labeled", str(labeled))
    assert run(shards, output, "next-sentence", *more, "--json") == 0
    captured = capsys.readouterr()
    assert re.search(r"run 1 of 2: with, seed 0; about \d+ min left in all", captured.err)
    found = json.loads(captured.out)
    assert [arm["arm"] for arm in found["arms"]] == ["with", "without"]
    for arm in found["arms"]:
        assert list(arm["measures"]) == [
            "pairs",
            "labeled",
            "masked_loss",
            "masked_accuracy",
        ]
        assert 3 < arm["measures"]["masked_loss"][0]["median"] < 6
    assert {one["standing"] for one in found["verdicts"]} == {"undecided"}
    assert not list(output.glob("cells/**/*.safetensors"))
    assert len(list(output.glob("pretrained/*/seed0/checkpoints/*/model.safetensors"))) == 2

    assert run(shards, output, "next-sentence", *more) == 0
    captured = capsys.readouterr()
    assert "step" not in captured.err  # nothing is trained
    assert "Does next sentence prediction help?" in captured.out
    assert f"--labeled {labeled}" in (output / "report.html").read_text("utf-8")

    results = (output / "results.jsonl").read_text("utf-8")
    (tmp_path / "elsewhere").mkdir()
    output = output.rename(tmp_path / "elsewhere" / output.name)
    labeled = labeled.rename(tmp_path / "elsewhere" / labeled.name)
    more = ("--labeled", str(labeled))
    (output / "cells" / "with" / "seed0" / "result.json").unlink()
    assert run(shards, output, "next-sentence", *more) == 0
    assert (output / "results.jsonl").read_text("utf-8") == results
    capsys.readouterr()

    labeled.write_text("text,label\na,0\nb,1\n")
    assert run(shards, output, "next-sentence", *more) == 2
    assert "data: different data" in capsys.readouterr().err
    assert run(shards, output, "steps") == 2
    assert "study: next-sentence → steps" in capsys.readouterr().err


def test_an_arm_may_share_what_another_pretrained(shards, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Bidirectional, "parts", (4, 8))
    monkeypatch.setattr(Bidirectional, "probes", (GAPS_PROBE,))
    monkeypatch.setattr(Bidirectional, "claims", ())
    only = ("--only", "left-to-right", "--only", "left-to-right+bilstm", "--json")
    assert run(shards, tmp_path / "study", "bidirectional", *only) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    for arm in found["arms"]:
        first, last = arm["measures"]["gaps"]
        assert (first["at"], last["at"]) == (500.0, 1000.0)
        assert 0.0 < first["median"] <= 1.0
        assert 0.0 < last["median"] <= 1.0
        place = tmp_path / "study" / "cells" / arm["arm"] / "seed0"
        if arm["arm"] == "left-to-right":
            assert [first["median"], last["median"]] == [
                read_metric(place / part / "gaps") for part in ("part4", "part8")
            ]
    assert [path.name for path in (tmp_path / "study" / "pretrained").iterdir()] == [
        "left-to-right"
    ]
    assert [cell["arm"] for cell in found["missing"]] == [
        "both-directions", "both-directions+warm", "left-to-right+warm"
    ]  # fmt: skip
    checkpoints = list(tmp_path.glob("study/pretrained/left-to-right/seed0/checkpoints/step-*"))
    assert len(checkpoints) == 2  # what is measured, and no more


def test_warm_arms_go_on_from_one_encoder_and_predict_as_many_words(
    shards, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Bidirectional, "probes", (GAPS_PROBE,))
    monkeypatch.setattr(Bidirectional, "claims", ())
    monkeypatch.setattr(Bidirectional, "parts", (4, 8))
    study, arms = tmp_path / "study", ("both-directions+warm", "left-to-right+warm")
    only = [word for arm in arms for word in ("--only", arm)]
    assert run(shards, study, "bidirectional", "--tokens", "16000", *only, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    places = {arm["arm"]: [one["at"] for one in arm["measures"]["gaps"]] for arm in found["arms"]}
    assert places == {arms[0]: [16_000.0], arms[1]: [2_400.0]}  # tokens since the start, at the end
    pretrained = study / "pretrained"
    source = max((pretrained / "both-directions" / "seed0" / "checkpoints").iterdir())
    num_tokens = []
    for arm in arms:
        record = Run(pretrained / arm / "seed0").read_record()
        assert record.settings["model"] == str(source)
        assert record.source["sha256"] == hash_files(open_checkpoint(source))
        [checkpoint] = list_checkpoints(pretrained / arm / "seed0")
        num_tokens.append(json.loads((checkpoint / STATE_FILE).read_text())["tokens"])
    masked, left_to_right = num_tokens
    assert left_to_right == close(0.15 * masked, within=0.02 * masked)  # 15 % of words are masked


def test_a_cell_that_fails_doesnt_stop_the_others(shards, tmp_path, capsys, monkeypatch):
    broken = PretrainedArm("broken", "without a model", {"size": "gigantic"})
    whole = PretrainedArm("whole", "with one", {})
    monkeypatch.setattr(Steps, "parts", (8,))
    monkeypatch.setattr(Steps, "probes", ())
    monkeypatch.setattr(Steps, "arms", (broken, whole))
    monkeypatch.setattr(Steps, "claims", ())
    values = {"tokens of pre-training": 100, "tasks": ""}
    values |= {"steps of broken": 8, "steps of whole": 8}
    monkeypatch.setattr(Steps, "decide", lambda self: Decision(values))
    assert run(shards, tmp_path / "study", "steps") == 2
    captured = capsys.readouterr()
    assert "broken, seed 0, failed: unknown preset 'gigantic'" in captured.out
    assert "1 of 2 runs failed" in captured.err
    assert "whole" in captured.out


def test_what_is_no_study_and_no_shards_are_told(shards, tmp_path, capsys):
    assert main(["study", "alchemy", "--data", str(shards), "--output", str(tmp_path / "a")]) == 2
    assert main(["study", "steps", "--output", str(tmp_path / "a")]) == 2
    assert "--data" in capsys.readouterr().err
    assert run(tmp_path / "nothing", tmp_path / "a", "steps") == 2
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty", tmp_path / "a", "steps") == 2
    assert run(shards, tmp_path, "steps") == 2  # holds the folder `empty`
    error = capsys.readouterr().err
    assert "nothing" in error
    assert "didn't write; choose another --output" in error
    assert not (tmp_path / "a").exists()


def test_attention_and_recurrent_nets_are_compared_without_any_text(tmp_path, capsys):
    output = tmp_path / "study"
    words = f"study recurrent --output {output} --device cpu --seeds 1 --longest 4 --tokens 3000"
    assert main([*words.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [arm["arm"] for arm in found["arms"]] == [
        "attention",
        "attention-both-ways",
        "lstm",
        "gru",
    ]
    for arm in found["arms"]:
        assert [one["at"] for one in arm["measures"]["accuracy"]] == [1.0, 2.0, 4.0]
        assert arm["measures"]["tokens_per_second"][0]["median"] > 0
        assert arm["measures"]["first_gradient"][0]["median"] == 0
        assert -9 < arm["measures"]["first_gradient"][-1]["median"] < 1
    assert len(found["verdicts"]) == 4
    assert main([*words.split(), "--longest", "8"]) == 2
    assert main([*words.split(), "--minutes", "1"]) == 2
