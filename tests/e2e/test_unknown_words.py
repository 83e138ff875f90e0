"""Words outside the vocabulary: every command counts them, warns of many and refuses only such."""

from pathlib import Path

import pytest
from tests.letters import letters_tokenizer
from tests.unit.inference.small_task import save_classifier

import bertkit
from bertkit.base.errors import InputError
from bertkit.cli.main import main

KNOWN, HALF, UNKNOWN = "the cat saw a hat .", "the cat сидел тихо", "кот сидел"
HALF_IS = "WARNING: 2 of 4 tokens (50.0 %) are not in the vocabulary and are read as unknown"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("models") / "labels")


@pytest.fixture
def run(capsys):
    def call(*words: str | Path, exit_code: int = 0) -> str:
        assert main([str(word) for word in words]) == exit_code
        return "".join(capsys.readouterr())

    return call


def write_rows(path: Path, texts: list[str]) -> Path:
    rows = (f"{text},{'bad' if row % 2 else 'good'}\n" for row, text in enumerate(texts))
    path.write_text("text,label\n" + "".join(rows))
    return path


def list_commands(model: Path, classifier: str, text: str, folder: Path) -> list[list[str | Path]]:
    trained = ["--epochs", "1", "--max-length", "16", "--output", folder / "m"]
    table = write_rows(folder / "rows.csv", [text] * 4)
    column = ["--text-column", "text"]
    return [
        ["similarity", "--model", model, text, text],
        ["fill-mask", "--model", model, f"{text} [MASK]"],
        ["score", "--model", model, text],
        ["features", table, "--model", model, *column, "--output", folder / "f.jsonl"],
        ["embed", table, "--model", model, *column, "--output", folder / "v.npy"],
        ["embed", table, "--model", model, *column],
        [
            "search",
            "a hat",
            "--model",
            model,
            "--corpus",
            table,
            *column,
            "--index",
            folder / "i",
        ],
        ["classify", classifier, text],
        ["classify", classifier, "--file", table, "--output", folder / "answers.csv"],
        ["evaluate", classifier, table],
        ["finetune", "classify", "--model", model, "--train", table, "--dev", table, *trained],
    ]


def test_many_unknown_words_are_a_warning_of_every_command(model, classifier, run, tmp_path):
    for words in list_commands(model, classifier, HALF, tmp_path):
        shown = run(*words)
        told = [line for line in shown.splitlines() if "(50.0 %) are not in the vocabulary" in line]
        assert told, words
        assert all(line.startswith("WARNING: ") for line in told), words
    assert HALF_IS in run("classify", classifier, HALF)
    (other := tmp_path / "known").mkdir()
    for words in list_commands(model, classifier, KNOWN, other):
        assert "read as unknown" not in run(*words), words


def test_only_unknown_words_are_refused_by_every_command(model, classifier, run, tmp_path):
    for words in list_commands(model, classifier, UNKNOWN, tmp_path):
        if words[0] == "search":  # it finds their words all the same
            assert "(100.0 %) are not in the vocabulary" in run(*words)
            continue
        shown = run(*words, exit_code=2)
        assert "is in the vocabulary, so that all are read as unknown; use a model" in shown, words
    assert {path.name for path in tmp_path.iterdir()} <= {"rows.csv", "i", "m"}


@pytest.mark.parametrize("command", ["embed", "features", "classify"])
def test_one_file_of_many_may_have_unknown_words_only(command, model, classifier, run, tmp_path):
    (texts := tmp_path / "texts").mkdir()
    known, unknown = (write_rows(texts / f"{one}.csv", [one] * 4) for one in (KNOWN, UNKNOWN))
    words = {
        "embed": ["embed", texts, "--model", model, "--text-column", "text"],
        "features": ["features", texts, "--model", model, "--text-column", "text"],
        "classify": ["classify", classifier, "--file", texts],
    }[command]
    made = tmp_path / "made"
    shown = run(*words, "--output", f"{made}/")
    assert f"{unknown}: WARNING: 8 of 8 tokens (100.0 %)" in shown
    assert f"{known}: WARNING" not in shown
    assert len([path for path in made.iterdir() if path.stem in {known.name, unknown.name}]) >= 2
    assert "2 of them done before" in run(*words, "--output", f"{made}/")
    known.unlink()
    shown = run(*words, "--output", f"{tmp_path / 'other'}/", exit_code=2)
    assert "none of 8 tokens is in the vocabulary" in shown


def test_functions_say_it_too(model, classifier, capsys):
    bertkit.embed([KNOWN, HALF], model=model)
    assert "WARNING: the texts: 2 of 10 tokens (20.0 %) are not in" in capsys.readouterr().err
    with pytest.raises(InputError, match="none of 4 tokens is in the vocabulary"):
        bertkit.similarity(UNKNOWN, UNKNOWN, model=model)
    with pytest.raises(InputError, match="none of 2 tokens is in the vocabulary"):
        bertkit.predict(classifier, [UNKNOWN])


def test_words_that_are_too_long_are_counted_where_they_are_lost(run, tmp_path):
    joined, book = "ab" * 60, tmp_path / "book.txt"
    book.write_text("\n\n".join([f"{joined} and more words. they go on here."] * 12))
    shown = run("train-tokenizer", book, "--vocab-size", "60", "--output", tmp_path / "v")
    long = "1,440 of 1,836 characters (78.4 %) are in words over 100 characters"
    assert f"\nWARNING: the input: {long}" in shown
    words = "--tokenizer", tmp_path / "v", "--output"
    shown = run("prepare", book, *words, tmp_path / "s")
    assert f"\nWARNING: {long}" in shown
    assert "not in the vocabulary and are read as unknown" in shown
    book.write_text("\n\n".join([joined] * 12))
    advice = "1,440 of 1,440 characters (100.0 %) are in words over 100 characters"
    shown = run("train-tokenizer", book, "--output", tmp_path / "w", exit_code=2)
    assert f"no words to train a vocabulary on; {advice}" in shown
    shown = run("prepare", book, *words, tmp_path / "t", exit_code=2)
    assert f"so that all are read as unknown; {advice}" in shown
    assert not (tmp_path / "t").exists() or not any((tmp_path / "t").iterdir())


def test_a_corpus_in_other_letters_is_prepared_with_a_warning(run, tmp_path):
    letters_tokenizer().save(tmp_path / "v")
    (tmp_path / "book.txt").write_text("\n\n".join(["Кот сидел на ковре. Он спал."] * 12))
    words = "--tokenizer", tmp_path / "v", "--output", tmp_path / "s"
    for _ in range(2):  # shards that are done say it again
        shown = run("prepare", tmp_path / "book.txt", *words)
        assert "\nWARNING: 60 of 80 tokens (75.0 %) are not in the vocabulary" in shown


def test_accents_that_are_removed_are_said_where_they_are_many(run, tmp_path):
    book = tmp_path / "buch.txt"
    book.write_text("Die Bücher fallen. Er läßt sie liegen.\n" * 4)
    words = "train-tokenizer", book, "--vocab-size", "60", "--output"
    kept = "of the words have accents, which the tokenizer removes; --no-strip-accents keeps them"
    assert f"22.2 % {kept}" in run(*words, tmp_path / "v")
    assert kept not in run(*words, tmp_path / "w", "--no-strip-accents")
    book.write_text("The books fall. He lets them lie.\n" * 40 + "A café.\n")
    assert kept not in run(*words, tmp_path / "x")
