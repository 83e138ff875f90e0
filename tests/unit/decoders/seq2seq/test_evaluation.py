"""What a model is held against: copied beginnings, and the right texts themselves."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.decoders.seq2seq.small import SHORT, open_job

from bertkit.base.errors import InputError
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import TextTable, hold_texts, open_texts
from bertkit.decoders.generation.seq2seq_generator import GeneratedText
from bertkit.decoders.seq2seq import evaluation
from bertkit.decoders.seq2seq.evaluation import copy_beginnings, evaluate_generation
from bertkit.decoders.seq2seq.scoring import read_references, score_texts

ANSWER = GeneratedText("zwei Hunde", 0.0, is_finished=True, is_cut=False)


def test_missing_references_are_found_before_anything_is_written(tmp_path):
    texts, references = tmp_path / "texts.en", tmp_path / "references.de"
    texts.write_text("one\ntwo\n")
    references.write_text("eins\n")
    for read in (open_texts(texts), hold_texts(["one", "two"])):
        with pytest.raises(InputError, match="got 2 texts and 1 reference;"):
            read_references("translate", references, TableSettings(), read)
    pipe = TextTable("pipe", "text", None)  # that can't be read twice
    assert read_references("translate", references, TableSettings(), pipe) == ["eins"]


def test_texts_are_not_held_against_themselves(tmp_path, monkeypatch):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("de\ten\ttext\neins\tone\tuno\n")
    other = tmp_path / "other.tsv"
    other.hardlink_to(pairs)

    def read(field: str | None, target_column: str | None, **given: str) -> list[str]:
        texts = open_texts(pairs, TableSettings(text_column=field, **given))
        settings = TableSettings(text_column=target_column, **given)
        return read_references("translate", other, settings, texts)

    assert read("de", "en") == ["one"]
    for same in (("de", "de"), (None, None), (None, "text"), (None, "de"), ("text", None)):
        with pytest.raises(
            InputError, match=r"can't hold texts and references in the same column.*-column"
        ):
            read(*same)
    with pytest.raises(InputError, match="in the same column"):
        read("de", "en", format="text")  # which has no fields
    monkeypatch.setattr("sys.stdin", pytest.fail)
    settings = TableSettings()
    with pytest.raises(InputError, match="can't both be standard input"):
        read_references("translate", Path("-"), settings, open_texts("-", settings))


def test_texts_of_a_pipe_are_counted_while_they_are_written():
    with pytest.raises(InputError, match="got 3 texts and 2 references"):
        score_texts("translate", itertools.repeat(ANSWER), ["eins", "zwei"])
    with pytest.raises(InputError, match="got 0 texts and 0 references"):
        score_texts("translate", [], [])


def test_the_signature_is_that_of_as_many_texts(files):
    for number, way in ((1, "eff:yes"), (2, "eff:no")):
        found = score_texts("translate", [ANSWER] * number, ["zwei Hunde"] * number)
        assert way in found.signatures["bleu"]
    assert score_texts("summarize", [ANSWER], ["zwei Hunde"]).metrics["rougeL"] == 1.0
    job = open_job(files, SHORT)
    del job.data.dev.examples[1:]
    assert "eff:yes" in evaluate_generation(job).signatures["bleu"]


def test_only_the_beginnings_of_endless_references_are_scored(files, monkeypatch):
    monkeypatch.setattr(evaluation, "RIGHT_CHARS", 4)  # a word, which BLEU can't score
    monkeypatch.setattr(evaluation, "copy_beginnings", lambda job: job.data.dev.targets)
    warning, *_ = evaluate_generation(open_job(files, SHORT)).warnings
    assert "the references themselves have 0" in warning


def build_job(sources, targets):
    part = SimpleNamespace(sources=sources, targets=targets)
    saved = SimpleNamespace(max_target_length=16)
    data = SimpleNamespace(train=part, dev=part)
    return SimpleNamespace(data=data, saved=saved)


@pytest.mark.parametrize(
    ("sources", "targets", "copied"),
    [
        (["one  two\nthree", ""], ["eins", "eins zwei drei"], ["one two", ""]),
        (["今天天气很好，我们去公园。"], ["天气很好。"], ["今天天气"]),
        (["ที่นี่ดีมาก"], ["ดีมาก"], ["ที่นี่ดีม"]),
        (["one " * 99], ["eins " * 60], ["one " * 15 + "one"]),  # as the model may write
        (["one two"], ["…"], ["one"]),
    ],
)
def test_as_many_words_are_copied_as_are_right(sources, targets, copied):
    assert copy_beginnings(build_job(sources, targets)) == copied
