"""Which model a command takes, and that the bundled one needs no name."""

import json
import sys
from pathlib import Path

import pytest
from tests.unit.inference.small import save_small

from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.checkpoints.bundled import PACKAGE
from bertkit.cli.default_model import take_model
from bertkit.cli.main import main
from bertkit.embeddings.embedder import Embedder
from bertkit.embeddings.features import FeatureExtractor
from bertkit.embeddings.word_vectors import WordVectors
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.scoring.text_scorer import TextScorer


@pytest.fixture
def bundled(tmp_path, monkeypatch) -> Path:
    """A package as the one that comes with bertkit, with a small model."""
    package = tmp_path / "packages" / PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for part in ("words", "vectors"):
        save_small(package / part)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)  # the real one, if a test loaded it
    monkeypatch.chdir(tmp_path)
    return package


@pytest.fixture
def run_folder(tmp_path) -> str:
    save_small(tmp_path / "run")
    return str(tmp_path / "run")


def test_a_folder_or_an_id_in_front_is_the_model(bundled, run_folder):
    assert take_model((run_folder, "a text"), None, "words") == (run_folder, ("a text",))
    assert take_model((run_folder,), None, "words") == (run_folder, ())
    assert take_model(("run", "a text"), None, "words") == ("run", ("a text",))
    assert take_model(("owner/name", "text"), None, "words") == ("owner/name", ("text",))
    assert take_model(("runs/x/", "text"), None, "words") == ("runs/x/", ("text",))
    file = Path("texts.txt")
    assert take_model(("owner/name",), None, "words", file=file) == ("owner/name", ())


def test_texts_alone_are_for_the_bundled_model(bundled, capsys):
    for words in (("two words",), ("She opened it.", "It was dark."), ("either/or is a text",)):
        assert take_model(words, None, "words") == (str(bundled / "words"), words)
    assert take_model(("cat", "dog"), None, "vectors", num_texts=2)[1] == ("cat", "dog")
    assert "with the model that comes with bertkit" in capsys.readouterr().err


def test_a_flag_names_the_model_whatever_the_texts_look_like(bundled, run_folder):
    assert take_model((run_folder, "b"), "other", "words") == ("other", (run_folder, "b"))


def test_a_word_that_may_be_a_model_is_an_error(bundled):
    with pytest.raises(SettingsError, match="'bert-base' may be a text or the name of a model"):
        take_model(("bert-base", "dog"), None, "words")
    assert take_model(("cat", "dog"), None, "words")[1] == ("cat", "dog")


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("bertkit.checkpoints.bundled.PACKAGE", "bertkit_no_such_package")
    with pytest.raises(MissingExtraError, match=r"pip install \./models/minilm"):
        take_model(("a text",), None, "words")


def test_every_command_that_can_do_without_a_name_does(bundled, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("the cat saw a dog\na dog saw the cat\n")
    for line in (
        ["fill-mask", "the [MASK] saw a dog"],
        ["next-sentence", "the cat saw a dog.", "a dog saw the cat."],
        ["score", "the cat saw a dog"],
        ["similarity", "the cat saw", "a dog saw"],
        ["search", "the cat saw", "--corpus", "texts.txt"],
        ["embed", "texts.txt", "--output", "vectors.npy"],
        ["view", "the cat saw a dog"],
        ["nearest", "cat"],
        ["analogy", "cat", "dog", "--minus", "saw"],
        ["features", "texts.txt", "--output", "features.jsonl"],
    ):
        assert main(line) == 0, capsys.readouterr().err
        assert "with the model that comes with bertkit" in capsys.readouterr().err
    (tmp_path / "train.csv").write_text("text,label\n" + "the cat,x\na dog,y\n" * 20)
    tuned = ["finetune", "classify", "--train", "train.csv", "--output", "tuned"]
    assert main([*tuned, "--epochs", "1", "--max-length", "12"]) == 0
    card = (tmp_path / "tuned" / "README.md").read_text()
    assert "Fine-tuned from bertkit-minilm-vectors" in card
    assert "Attention of bertkit-minilm-vectors" in (tmp_path / "attention.html").read_text()
    index = ["search", "the cat", "--corpus", "texts.txt", "--max-length", "9"]
    assert main(index) == 2
    assert (
        "has vectors of bertkit-minilm-vectors with other settings (max_length:"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "part"),
    [([], "vectors"), (["--read-mask"], "words"), (["--views", "heads,words"], "words")],
)
def test_a_view_is_of_the_words_only_if_it_needs_them(bundled, capsys, words, part):
    assert main(["view", "the cat saw", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == f"bertkit-minilm-{part}"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "line",
    [
        ["fill-mask", "the [MASK] saw a dog"],
        ["next-sentence", "the cat saw a dog.", "a dog saw the cat."],
        ["score", "the cat saw a dog"],
        ["similarity", "the cat saw", "a dog saw"],
        ["search", "the cat saw", "--corpus", "texts.txt"],
        ["embed", "texts.txt"],
        ["features", "texts.txt"],
        ["view", "the cat saw a dog", "--json"],
        ["nearest", "cat", "--layer", "1"],
        ["analogy", "cat", "dog", "--minus", "saw", "--layer", "1"],
    ],
    ids=lambda line: line[0],
)
def test_every_command_says_once_in_what_precision_it_computes(
    bundled, tmp_path, capsys, line, precision
):
    (tmp_path / "texts.txt").write_text("the cat saw a dog\na dog saw the cat\n")
    assert main([*line, "--precision", precision]) == 0
    found = [said for said in capsys.readouterr().err.splitlines() if "computing on" in said]
    assert len(found) == 1
    assert found[0].startswith(f"computing on cpu in {precision}")


def test_python_needs_no_name_either(bundled):
    assert FillMask.load()("the [MASK]").blanks
    assert 0 <= NextSentence.load()("the cat", "a dog") <= 1
    assert TextScorer.load()("the cat").log_probability < 0
    assert len(Embedder.load().encode(["the cat"])) == 1
    assert len(WordVectors.load().nearest("cat", top_k=2).neighbors) == 2
    assert FeatureExtractor.load()("the cat").sequence is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["next-sentence", "only one text"], "got 1 text; give two"),
        (["view", "a text", "a pair", "and more"], "got 3 texts; give one, or two"),
        (["embed", "a", "b", "c"], "b doesn't exist, and matches no file"),
        (["embed"], "give a file or folder of texts, or - for standard input"),
    ],
)
def test_a_wrong_number_of_texts_is_told_in_one_line(bundled, capsys, words, message):
    assert main(words) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
