"""Two files of lines → a model → translations, through the command line."""

import gzip
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from tests.unit.decoders.seq2seq.small import make_pairs, write_files, write_sides

from bertkit.base.extras import describe_install
from bertkit.cli.main import main

FLAGS = (
    "--steps 80 --eval-every 40 --average 1 --size 1x64 --vocab-size 64"
    " --dropout 0.1 --learning-rate 5e-3 --tokens-per-batch 300 --max-length 16"
    " --max-tokens 16 --eval-examples 8 --device cpu"
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translate")
    write_files(folder)
    assert main(words(folder)) == 0
    return folder


def words(folder: Path) -> list[str]:
    files = f"--train {folder}/train.en {folder}/train.de --dev {folder}/dev.en {folder}/dev.de"
    return f"finetune translate {files} --output {folder}/model {FLAGS}".split()


def test_a_finished_model_is_told_again_as_json(workshop, capsys):
    assert main([*words(workshop), "--json"]) == 0
    captured = capsys.readouterr()
    assert "is already finished" in captured.err
    found = json.loads(captured.out)
    assert found["metrics"]["bleu"] > 80
    assert "nrefs:1" in found["signatures"]["bleu"]


def test_texts_are_translated_line_by_line(workshop, capsys):
    assert main(["translate", f"{workshop}/model", "one two", "three four", "--beams", "3"]) == 0
    assert capsys.readouterr().out == "eins zwei\ndrei vier\n"
    command = ["translate", f"{workshop}/model", "one two", "--num-answers", "2", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["is_finished"], found["is_cut"]) == ("eins zwei", True, False)
    assert len(found["others"]) == 1
    command = ["translate", f"{workshop}/model", "one two", "", "four", "--num-answers", "2"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[0], lines[2:4], lines[4]) == (6, "eins zwei", ["", ""], "vier")


def test_row_n_of_a_file_is_line_n_of_the_output(workshop, tmp_path, capsys, monkeypatch):
    pairs = make_pairs(5, 9)
    sources = [*(source for source, _ in pairs), "", "one " * 40]
    path = tmp_path / "texts.txt.gz"
    path.write_bytes(gzip.compress("\n".join(sources).encode()))
    output = tmp_path / "out.txt"
    command = ["translate", f"{workshop}/model", "--file", str(path), "--output", str(output)]
    assert main(command) == 0
    lines = output.read_text().splitlines()
    assert lines[:5] == [target for _, target in pairs]
    assert (lines[5], len(lines)) == ("", 7)
    told = capsys.readouterr().err
    assert "7 translated" in told
    assert "1 empty; 1 truncated because they are too long" in told
    assert main(command) == 2
    assert "replace it by --overwrite" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"one two\n\nfour\n")))
    assert main(["translate", f"{workshop}/model", "-"]) == 0
    assert capsys.readouterr().out == "eins zwei\n\nvier\n"


def test_translations_are_held_against_right_ones(workshop, tmp_path, capsys):
    sources, targets = write_sides(tmp_path, "test", make_pairs(10, 9))
    command = ["translate", f"{workshop}/model", "--file", str(sources)]
    assert main([*command, "--references", str(targets)]) == 0
    bleu, chrf = capsys.readouterr().out.splitlines()
    assert bleu.startswith("bleu 100.0\tnrefs:1|")
    assert chrf.startswith("chrf 100.0\t")
    targets.write_text("eins\n")
    assert main([*command, "--references", str(targets)]) == 2
    assert "got 10 texts and 1 reference;" in capsys.readouterr().err


def test_a_missing_extra_is_told_before_texts_are_written(workshop, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    monkeypatch.setattr(
        "bertkit.decoders.generation.seq2seq_generator.Translator.load", pytest.fail
    )
    command = ["translate", f"{workshop}/model", "--file", f"{workshop}/dev.en"]
    assert main([*command, "--references", f"{workshop}/dev.de"]) == 2
    assert describe_install("translate") in capsys.readouterr().err


@pytest.mark.parametrize("flags", ["--output OUT", "--beams 0"])
def test_what_is_wrong_is_told_before_the_model_is_loaded(tmp_path, capsys, monkeypatch, flags):
    monkeypatch.setattr(
        "bertkit.decoders.generation.seq2seq_generator.Translator.load", pytest.fail
    )
    path, output = tmp_path / "texts.jsonl", tmp_path / "out.txt"
    path.write_text('{"text": "one"}\n' * 9 + "{}\n")
    flags = flags.replace("OUT", str(output))
    assert main(f"translate model --file {path} {flags}".split()) == 2
    assert ("row 10" if "output" in flags else "beams") in capsys.readouterr().err
    assert not output.exists()
