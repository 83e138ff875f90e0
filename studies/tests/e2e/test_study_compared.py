"""Studies of encoders against what was there before them, from the command line."""

import json
import random
from pathlib import Path

import pytest
from studies.tests.e2e.test_study import read_metric, write_told

from bertkit.cli.main import main
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.experiments import features, translation
from bertkit_studies.probes.downstream import TaskTuning
from bertkit_studies.probes.pretrained_arms import PretrainingScale

ENGLISH = ("one", "two", "three", "four", "five", ".")
GERMAN = ("eins", "zwei", "drei", "vier", "acht", ".")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    tuning = TaskTuning(num_train=24, num_dev=24, learning_rate=1e-3, epochs=1.0, batch_size=8)
    least = {"size": "mini", "max_length": 32, "batch_size": 4, "eval_examples": 8}
    monkeypatch.setattr(
        features.Features, "scales", {"small": PretrainingScale(least, 1_000, tuning)}
    )
    scale = translation.TranslationScale(
        {"size": "1x16", "vocab_size": 64, "learning_rate": 1e-3},
        {"embedding_size": 16, "hidden_size": 16, "attention_size": 16},
        {"tokens_per_batch": 100, "label_smoothing": 0.1, "dropout": 0.1},
        tokens=300,
    )
    monkeypatch.setitem(translation.SCALES, "small", scale)


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main(["study", *words, "--device", "cpu", "--seeds", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_vectors_of_all_kinds_are_compared(tmp_path, capsys):
    write_told(tmp_path / "corpus.txt", 120)
    folder = str(tmp_path)
    words = f"train-tokenizer {folder}/corpus.txt --vocab-size 120 --output {folder}/tokenizer"
    assert main(words.split()) == 0
    words = (
        f"prepare {folder}/corpus.txt --tokenizer {folder}/tokenizer --output {folder}/shards"
        " --held-out 0.3 --workers 1"
    )
    assert main(words.split()) == 0
    capsys.readouterr()
    flags = ("--data", f"{folder}/shards", "--output", f"{folder}/study")
    found = ask(capsys, "features", *flags)
    assert [arm["arm"] for arm in found["arms"]] == [arm.name for arm in features.ARMS]
    study = tmp_path / "study"
    num_dev = (study / "tasks" / "pairs-dev.csv").read_text("utf-8").count("\n") - 1
    runs = list(study.glob("cells/*/seed0/part8/pairs"))
    assert [run.relative_to(study / "cells").parts[0] for run in runs] == ["fine-tuned"]
    for arm in found["arms"]:
        assert list(arm["measures"]) == ["pairs"]
        accuracy = arm["measures"]["pairs"][0]["median"]
        place = study / "cells" / arm["arm"] / "seed0" / "part8" / "pairs"
        if place.exists():
            assert accuracy == read_metric(place)
        else:  # a share of the held-out pairs
            assert round(num_dev * accuracy, 6) in range(1, num_dev + 1)
    assert len(found["verdicts"]) == 5
    [pretrained] = (tmp_path / "study" / "pretrained").iterdir()
    assert pretrained.name == "fine-tuned"
    assert not list((tmp_path / "study" / "cells").rglob("*.safetensors"))


def test_translators_are_compared_and_taken_up(tmp_path, capsys):
    write_parallel(tmp_path, "train", 60, 1)
    write_parallel(tmp_path, "dev", 6, 2)
    flags = ["--train", *sides(tmp_path, "train"), "--dev", *sides(tmp_path, "dev")]
    found = ask(capsys, "translation", *flags, "--output", str(tmp_path / "study"))
    assert [arm["arm"] for arm in found["arms"]] == ["transformer", "bahdanau"]
    for arm in found["arms"]:
        measures = {name: one[0]["median"] for name, one in arm["measures"].items()}
        assert list(measures) == ["bleu", "chrf", "loss", "tokens_per_second", "parameters"]
        assert measures["chrf"] > measures["bleu"] / 100
        assert 1 < measures["loss"] < 6
        assert measures["tokens_per_second"] > 0
    assert found["decided"]["tokens of training"] == 300
    assert found["decided"]["held-out pairs"] == 6
    assert "version:" in found["decided"]["BLEU"]
    again = ask(capsys, "translation", *flags, "--output", str(tmp_path / "study"))
    assert again["arms"] == found["arms"]


def test_an_encoder_is_one_more_arm(tmp_path, capsys):
    write_parallel(tmp_path, "train", 30, 1)
    write_parallel(tmp_path, "dev", 3, 2)
    write_encoder(tmp_path / "M")
    flags = ["--train", *sides(tmp_path, "train"), "--dev", *sides(tmp_path, "dev")]
    flags += ["--model", str(tmp_path / "M"), "--only", "transformer", "--only", "warm-start"]
    output = tmp_path / "study"
    found = ask(capsys, "translation", *flags, "--tokens", "100", "--output", str(output))
    sizes = [arm["measures"]["parameters"][0]["median"] for arm in found["arms"]]
    assert sizes[0] == sizes[1]
    standings = [verdict["standing"] for verdict in found["verdicts"]]
    assert standings == ["not_measured", "not_measured", "undecided"]
    assert found["verdicts"][0]["why"] == "no run of bahdanau is done"
    assert (output / "drawn" / "seed0" / "model.safetensors").exists()


def test_pairs_that_arent_the_same_or_arent_there_are_told(tmp_path, capsys):
    write_parallel(tmp_path, "train", 60, 1)
    words = ["study", "translation", "--output", str(tmp_path / "study"), "--device", "cpu"]
    train = ["--train", *sides(tmp_path, "train")]
    assert main(words) == 2
    assert main([*words, "--train", str(tmp_path / "nothing.en")]) == 2
    assert main([*words, *train, "--only", "warm-start"]) == 2
    assert "has no arm 'warm-start'" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def write_parallel(folder: Path, name: str, number: int, seed: int) -> None:
    """Sentences of numbers, the same ones in both languages."""
    choose = random.Random(seed)
    drawn = [choose.choices(range(len(ENGLISH)), k=choose.randint(2, 4)) for _ in range(number)]
    for words, path in zip((ENGLISH, GERMAN), sides(folder, name), strict=True):
        lines = (" ".join(words[each] for each in numbers) for numbers in drawn)
        Path(path).write_text("".join(f"{line}\n" for line in lines))


def sides(folder: Path, name: str) -> list[str]:
    return [str(folder / f"{name}.en"), str(folder / f"{name}.de")]


def write_encoder(folder: Path) -> None:
    """A small one with random weights that takes as many tokens as pairs may have."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ENGLISH, *GERMAN[:-1]]
    Tokenizer(words).save(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
    )
    BertForMaskedLM(config).save_pretrained(folder)
