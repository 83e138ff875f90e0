"""Next sentences that always or never follow teach nothing, and are refused."""

from pathlib import Path

from tests.e2e.small import make_workshop, pretrain_words, run

ONE = [f"The {noun} is here and the {noun} was there." for noun in ("cat", "dog", "hat", "owl")]


def prepare(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "corpus.txt").write_text(text)
    make_workshop(folder, "corpus.txt", vocab_size=80)
    return folder


def test_one_document_has_no_other_b(tmp_path, capsys):
    workshop = prepare(tmp_path / "one", "\n".join(ONE * 20))
    _, error = run(capsys, *pretrain_words(workshop, tmp_path / "run"), code=2)
    assert "the second text follows the first in all of " in error
    assert " training pairs. Use several documents (a blank line between two), or" in error
    assert not (tmp_path / "run").exists()
    _, error = run(capsys, *pretrain_words(workshop, tmp_path / "run", "--objective", "mlm"))
    assert "next" not in error


def test_documents_of_one_sentence_have_no_next_one(tmp_path, capsys):
    workshop = prepare(tmp_path / "one", "\n\n".join(ONE * 20))
    _, error = run(capsys, *pretrain_words(workshop, tmp_path / "run"), code=2)
    assert "the second text follows the first in none of " in error
    assert "Use documents of several sentences, or --objective mlm" in error


def test_shares_are_said_where_the_run_begins(tmp_path, capsys):
    workshop = prepare(tmp_path / "two", "\n\n".join(["\n".join(ONE * 4)] * 6))
    _, error = run(capsys, *pretrain_words(workshop, tmp_path / "run"))
    training, held_out = [line for line in error.splitlines() if "next sentences: " in line]
    assert " training pairs are IsNext (" in training
    assert " held-out pair" in held_out
    _, error = run(capsys, *pretrain_words(workshop, tmp_path / "run", steps=14))
    assert "next sentences: " not in error  # it was said


def test_held_out_pairs_of_one_kind_are_a_warning(tmp_path, capsys):
    folder = prepare(tmp_path / "two", "\n\n".join(["\n".join(ONE * 4)] * 6))
    (folder / "held-out.txt").write_text("\n".join(ONE * 4))
    words = f"prepare {folder}/corpus.txt --dev {folder}/held-out.txt"
    more = f"--tokenizer {folder}/tokenizer --output {folder}/shards --overwrite"
    run(capsys, *f"{words} {more}".split())
    _, error = run(capsys, *pretrain_words(folder, tmp_path / "run"))
    assert "\nWARNING: next sentences: " in error
    assert "(100.0 %); next-sentence accuracy isn't meaningful" in error
