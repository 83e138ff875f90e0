"""Texts that begin with hyphens, stand in files, or are none."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.inference.small import save_small
from tests.wings import has_command, needs

from bertkit.base.errors import InputError, MissingExtraError, SettingsError
from bertkit.checkpoints.bundled import PACKAGE
from bertkit.cli import texts as module
from bertkit.cli.main import main
from bertkit.cli.texts import choose_model
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.features import FeatureExtractor
from bertkit.inference.embeddings.word_vectors import WordVectors
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.text_scorer import TextScorer

FILL = ["fill-mask", "--model"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("small")
    save_small(folder)
    return str(folder)


@pytest.fixture
def fails(capsys):
    """The one line that a wrong call prints."""

    def call(*words: str) -> str:
        assert main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return call


@pytest.mark.parametrize(
    "words",
    [
        ["- a [MASK]"],
        ["-5 [MASK]"],
        ["--a is a [MASK]"],
        ["--", "--a is a [MASK]"],
        ["a [MASK]", "--device", "cpu", "--", "--[MASK]"],
    ],
)
def test_a_text_may_begin_with_hyphens(model, capsys, words):
    assert main([*FILL, model, *words]) == 0
    assert words[-1] in capsys.readouterr().out.splitlines()


def test_text_of_the_command_line_is_mended(model, capsys):
    assert main([*FILL, model, "a \udcff [MASK]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "a \ufffd [MASK]"


@pytest.mark.parametrize("words", [["- a cat", "the hat"], ["a", "--device", "cpu", "--", "- hat"]])
def test_a_sentence_may_begin_with_a_hyphen(model, capsys, words):
    assert main(["similarity", "--model", model, *words]) == 0


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ([*FILL, "MODEL", "a [MASK]", "--topk"], "--topk"),
        ([*FILL, "MODEL", "a [MASK]", "--topk=3"], "--topk"),
        ([*FILL, "MODEL", "a [MASK]", "--Top_K", "3"], "--Top_K"),
        (["similarity", "--model", "MODEL", "a cat", "--jsn"], "--jsn"),
        (["similarity", "--model", "MODEL", "a cat", "the hat", "--jsn"], "--jsn"),
    ],
)
def test_a_misspelled_flag_is_no_text(model, fails, words, option):
    assert option in fails(*(model if word == "MODEL" else word for word in words))


def test_an_error_names_the_row_after_what_was_before_it(model, capsys, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a [MASK]\r\n\n  \na cat\n")
    assert main([*FILL, model, "--file", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("a [MASK]\n")
    assert f"{path}, row 4 ('a cat') has no" in captured.err
    assert main([*FILL, model, "a [MASK]", "a hat"]) == 2
    assert "text 2 ('a hat') has no" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "the [MASK]\n\na [MASK]\n", ""),
        ("a.jsonl", '{"body": "the [MASK]", "n": 1}\n{"body": "a [MASK]"}\n', "--text-column body"),
        ("a.csv", "n;body\n1;the [MASK]\n2;a [MASK]\n", "--text-column body --delimiter ;"),
        ("a.dat", "n\ttext\n1\tthe [MASK]\n2\ta [MASK]\n", "--format tsv --encoding utf-16"),
    ],
)
def test_a_file_of_any_format_has_texts(model, capsys, tmp_path, name, content, words, suffix):
    data = content.encode("utf-16" if "utf-16" in words else "utf-8")
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    assert main([*FILL, model, "--file", str(path), *words.split(), "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["the [MASK]", "a [MASK]"]


def test_texts_that_cannot_be_read_are_refused_before_a_model_is_loaded(fails, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(" \n")
    assert f"{path} has no text" in fails(*FILL, str(tmp_path), "--file", str(path))
    assert "is a folder; name one" in fails(*FILL, str(tmp_path), "--file", str(tmp_path))
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert "--text-column" in fails(*FILL, str(tmp_path), "--file", str(tmp_path / "a.csv"))
    assert "give texts or --file, not both" in fails(*FILL, str(tmp_path), "a", "--file", str(path))
    assert "not both" in fails(*FILL, str(tmp_path), "a [MASK]", "-")


def test_standard_input_may_be_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is no standard input; name a file of texts"):
        module.open_input(["-"], None)
    with pytest.raises(InputError, match="there is no text"):
        module.open_input([], None)


def test_what_is_text_is_printed_and_what_steers_a_terminal_is_not():
    text = "10\u202f%\u00a0\u3000 \u0646\u200c\u0647 \U0001f469\u200d\U0001f52c co\u00adop"
    assert module.legible(f"{text}\n\t") == f"{text}\n\t"
    assert module.printable(text) == text
    for steering in "\x1b\x07\x7f\x9b\r\u202e\u2066\u200f\ufeff\u2028\u2029\ud800":
        assert module.legible(steering) == module.printable(steering) == "\ufffd"
    assert module.printable("\n\t") == "\ufffd\ufffd"


def test_a_terminal_shows_results_and_no_bar(model, capsys, monkeypatch):
    words = [*FILL, model, "a [MASK]", "[MASK] [MASK]"]
    assert main(words) == 0
    piped = capsys.readouterr()
    assert len(piped.err.splitlines()) == 1  # the precision
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    assert capsys.readouterr() == piped


@pytest.fixture
def bundled(tmp_path, monkeypatch):
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
def run_folder(tmp_path):
    save_small(tmp_path / "run")
    return str(tmp_path / "run")


def test_a_model_is_named_by_its_flag(bundled, run_folder, capsys):
    for inputs in ((run_folder, "a text"), ("texts.txt", run_folder)):
        with pytest.raises(SettingsError, match=f"{run_folder} is a model; name it with --model"):
            choose_model(None, "words", inputs)
    for inputs, file in (
        (("owner/name", "a text"), None),
        (("owner/name",), "texts.txt"),
        (("bert-base-uncased", "a"), None),
    ):
        with pytest.raises(SettingsError, match="looks like the id of a model; name it with --mod"):
            choose_model(None, "words", inputs, file)
    assert choose_model("owner/other", "words", ("either/or", "a")) == "owner/other"
    for inputs in ((), ("either/or",), ("two words", "a/b"), ("packages", "a"), ("a" * 999,)):
        assert choose_model(None, "vectors", inputs) == str(bundled / "vectors")
    assert "with the model that comes with bertkit" in capsys.readouterr().err


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("bertkit.checkpoints.bundled.PACKAGE", "bertkit_no_such_package")
    with pytest.raises(MissingExtraError, match=r"pip install \./models/minilm"):
        choose_model(None, "words", ("a text",))


def test_every_command_that_can_do_without_a_name_does(bundled, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("the cat saw a dog\na dog saw the cat\n")
    for line in (
        ["fill-mask", "the [MASK] saw a dog"],
        ["score", "the cat saw a dog"],
        ["similarity", "the cat saw", "a dog saw"],
        ["search", "the cat saw", "--corpus", "texts.txt"],
        ["embed", "texts.txt", "--output", "vectors.npy"],
        ["view", "the cat saw a dog"],
        ["attention", "the cat saw a dog", "--token", "cat"],
        ["nearest", "cat"],
        ["features", "texts.txt", "--output", "features.jsonl"],
    ):
        if not has_command(line[0]):
            continue
        assert main(line) == 0, capsys.readouterr().err
        assert "with the model that comes with bertkit" in capsys.readouterr().err
    (tmp_path / "train.csv").write_text("text,label\n" + "the cat,x\na dog,y\n" * 20)
    tuned = ["finetune", "classify", "--train", "train.csv", "--output", "tuned"]
    assert main([*tuned, "--epochs", "1", "--max-length", "12"]) == 0
    card = (tmp_path / "tuned" / "README.md").read_text()
    assert "Fine-tuned from all-MiniLM-L6-v2 (comes with bertkit)" in card
    title = "all-MiniLM-L6-v2 (comes with bertkit)"
    if has_command("view"):
        assert title in (tmp_path / "attention.html").read_text()
    index = ["search", "the cat", "--corpus", "texts.txt", "--max-length", "9"]
    assert main(index) == 2
    assert f"has vectors of {title} with other settings (max_length:" in capsys.readouterr().err


@needs("interpret")
@pytest.mark.parametrize(
    ("words", "part"),
    [(["saw"], "vectors"), (["[MASK]"], "words"), (["saw", "--views", "heads,words"], "words")],
)
def test_a_view_is_of_the_words_only_if_it_needs_them(bundled, capsys, words, part):
    assert main(["view", f"the cat {words[0]}", "--json", *words[1:]]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == f"bertkit-minilm-{part}"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "line",
    [
        ["fill-mask", "the [MASK] saw a dog"],
        ["score", "the cat saw a dog"],
        ["similarity", "the cat saw", "a dog saw"],
        ["search", "the cat saw", "--corpus", "texts.txt"],
        ["embed", "texts.txt"],
        ["features", "texts.txt"],
        ["view", "the cat saw a dog", "--json"],
        ["attention", "the cat saw a dog"],
        ["nearest", "cat", "--layer", "1"],
    ],
    ids=lambda line: line[0],
)
def test_every_command_says_once_in_what_precision_it_computes(
    bundled, tmp_path, capsys, line, precision
):
    if not has_command(line[0]):
        pytest.skip("its wing is deleted")
    (tmp_path / "texts.txt").write_text("the cat saw a dog\na dog saw the cat\n")
    assert main([*line, "--precision", precision]) == 0
    found = [said for said in capsys.readouterr().err.splitlines() if "computing on" in said]
    assert len(found) == 1
    assert found[0].startswith(f"computing on cpu in {precision}")


def test_python_needs_no_name_either(bundled):
    assert FillMask.load()("the [MASK]").blanks
    assert 0 <= NextSentence.load()(("the cat", "a dog")) <= 1
    assert TextScorer.load()("the cat").log_probability < 0
    assert len(Embedder.load()(["the cat"])) == 1
    assert len(WordVectors.load().nearest("cat", top_k=2).neighbors) == 2
    assert FeatureExtractor.load()("the cat").sequence is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["similarity", "only one text"], "got 1 text; give two"),
        pytest.param(["view", *"abc"], "got 3 texts; give one, or two", marks=needs("interpret")),
        pytest.param(
            ["attention", *"abc"], "got 3 texts; give one, or two", marks=needs("interpret")
        ),
        (["embed", "a", "b", "c"], "a doesn't exist, and matches no file"),
        (["embed", "a/a", "b", "c"], "a/a looks like the id of a model; name it with --model a/a"),
        (["embed"], "give a file or folder of texts, or - for standard input"),
    ],
)
def test_a_wrong_number_of_texts_is_told_in_one_line(bundled, capsys, words, message):
    assert main(words) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "line",
    [
        "classify nomodel text",
        "evaluate nomodel test.csv",
        "embed a.txt --model nomodel",
        "fill-mask --model nomodel a",
        "similarity --model nomodel a b",
    ],
)
def test_what_can_be_no_model_is_told_before_torch_is_loaded_or_the_hub_is_asked(line):
    code = (
        "import sys; from bertkit.cli.main import main; code = main(sys.argv[1:]);"
        " assert not {'torch', 'huggingface_hub'} & sys.modules.keys(); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *line.split()], capture_output=True)
    assert done.returncode == 2
    assert done.stderr.startswith(b"bertkit: nomodel doesn't exist, and isn't the id of a model of")
