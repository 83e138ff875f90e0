import json
from dataclasses import replace

import pytest
import torch
from tests.closeness import close
from tests.unit.decoders.small_rewriter import build_rewriter, save_rewriter
from tests.unit.inference.small import save_small

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import CheckpointError, DamagedFileError, InputError, SettingsError
from bertkit.decoders.decoding.sequences import Hypothesis
from bertkit.decoders.decoding.settings import DecodingOverrides, DecodingSettings
from bertkit.decoders.generation import seq2seq_generator as module
from bertkit.decoders.generation.seq2seq_generator import (
    GeneratedText,
    GenerationCounts,
    Seq2SeqGenerator,
    Translator,
)
from bertkit.decoders.generation.settings import REWRITER_FILE, is_seq2seq_model
from bertkit.inference import stream

NOTHING = Hypothesis((), 0.0, 0.0, is_finished=True)
TEXTS = ["the cat saw the dog.", "a", "", "lost hats lost hats - the", "the " * 20, "a dog"]


@pytest.fixture(scope="module")
def rewriter():
    return build_rewriter()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_rewriter(tmp_path_factory.mktemp("models") / "model")


def test_a_text_is_rewritten_alike_alone_and_among_others(rewriter):
    together = rewriter(TEXTS)
    assert len({answer.text for answer in together}) > 2
    for text, answer in zip(TEXTS, together, strict=True):
        alone = rewriter(text)
        assert (alone.text, alone.is_finished, alone.is_cut) == (
            answer.text,
            answer.is_finished,
            answer.is_cut,
        )
        assert alone.score == close(answer.score, "float32")


def test_order_and_answers_stay_in_windows_and_batches_of_any_size(rewriter, monkeypatch):
    expected = [answer.text for answer in rewriter(TEXTS)]
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)
    monkeypatch.setitem(module.TOKENS_PER_BATCH, "cpu", 40)
    assert [answer.text for answer in rewriter.stream(iter(TEXTS))] == expected


def test_what_is_odd_has_an_outcome_and_is_counted(rewriter):
    counts = GenerationCounts()
    answers = list(rewriter.stream(TEXTS, counts=counts))
    assert answers[2] == GeneratedText("", 0.0, is_finished=True, is_cut=False)
    assert [answer.is_cut for answer in answers] == [False] * 4 + [True, False]
    assert (counts.texts, counts.empty, counts.truncated) == (6, 1, 1)
    assert counts.unfinished == sum(not answer.is_finished for answer in answers)
    assert counts.tokens == sum(
        min(10, len(ids) + 2) for ids in rewriter.tokenizer.piece_ids(TEXTS) if ids
    )
    assert 0 < counts.tokens_written <= 5 * 6


def test_an_answer_may_be_longer_where_that_is_asked_for(monkeypatch):
    endless = build_rewriter(max_target_length=24)
    with torch.no_grad():
        endless.model.masked_lm.bias[endless.tokenizer.sep_id] = -1e4
    monkeypatch.setattr(module, "MOST_MORE", 5)

    def count(**settings: int) -> int:
        counts = GenerationCounts()
        list(replace(endless, options=DecodingSettings(**settings)).stream(["a"], counts=counts))
        return counts.tokens_written

    assert count() == 3 * 3 + 5
    assert count(max_tokens=4) == 4
    assert count(max_tokens=22) == 22
    assert count(max_tokens=99) == 24
    assert count(min_tokens=20) == 21
    assert count(min_tokens=99) == 24


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({}, 117),
        ({"beams": 5}, 117),
        ({"beams": 50}, 12),
        ({"temperature": 1.0, "num_answers": 50}, 12),
    ],
)
def test_a_batch_has_fewer_texts_where_each_has_many_rows(rewriter, monkeypatch, settings, size):
    sizes = []

    def decode(sequences, settings, limits, sources):
        sizes.append(len(sources))
        return [[NOTHING]] * len(sources)

    monkeypatch.setattr(module, "decode", decode)
    replace(rewriter, options=DecodingSettings(**settings))(["a"] * 117)
    assert max(sizes) == size


def test_what_is_chosen_takes_the_place_of_what_the_folder_says(rewriter):
    assert rewriter.with_options(DecodingOverrides()).options == rewriter.saved.decoding
    assert rewriter.with_options(DecodingSettings()).options == rewriter.saved.decoding
    assert rewriter.with_options(DecodingOverrides(num_answers=2)).options.beams == 2
    assert rewriter.with_options(DecodingOverrides(beams=3)).options.beams == 3
    drawn = rewriter.with_options(DecodingOverrides(temperature=1.0, seed=4)).options
    assert (drawn.beams, drawn.seed) == (1, 4)
    for wrong, message in (({"num_answers": 3}, r"num_answers \(3\) must be at most beams \(2\)"),):
        with pytest.raises(SettingsError, match=message):
            rewriter.with_options(DecodingOverrides(**wrong))


def test_each_setting_can_be_changed_and_none_has_to_be():
    assert DecodingOverrides.model_fields.keys() == DecodingSettings.model_fields.keys()
    for name, info in DecodingSettings.model_fields.items():
        assert getattr(DecodingOverrides(), name) is None
        assert DecodingOverrides.model_fields[name].description == info.description


def test_what_is_drawn_follows_from_seed_and_place(rewriter):
    settings = DecodingSettings(temperature=1.0, seed=1)
    first, second = (
        replace(rewriter, options=settings)(TEXTS),
        replace(rewriter, options=settings)(TEXTS),
    )
    assert [one.text for one in first] == [one.text for one in second]
    other = replace(rewriter, options=DecodingSettings(temperature=1.0, seed=2))(TEXTS)
    assert [one.text for one in first] != [one.text for one in other]


def test_anything_else_than_texts_is_refused(rewriter):
    for one in ("a cat", b"a cat"):
        with pytest.raises(InputError, match=r"expected a list of texts, got (one text|bytes)"):
            next(rewriter.stream(one))
    with pytest.raises(InputError, match="expected a text, got 5"):
        rewriter(5)
    with pytest.raises(InputError, match="expected a text, got 3"):
        rewriter(["a cat", 3])


def test_a_folder_is_loaded_and_writes_the_same(rewriter, folder):
    assert is_seq2seq_model(folder)
    translate = Translator.load(folder, device="cpu")
    assert translate(TEXTS) == rewriter(TEXTS)


def test_folders_for_something_else_are_refused(folder, tmp_path):
    save_small(tmp_path / "encoder")
    with pytest.raises(CheckpointError, match=f"has no {REWRITER_FILE}"):
        Translator.load(tmp_path / "encoder")
    other = save_rewriter(tmp_path / "other", kind="summarize")
    with pytest.raises(CheckpointError, match="was trained to summarize, not to translate"):
        Translator.load(other)
    assert Seq2SeqGenerator.load(other, device="cpu").saved.kind == "summarize"
    long = save_rewriter(tmp_path / "long", max_source_length=25)
    with pytest.raises(CheckpointError, match="don't belong together"):
        Translator.load(long)


def test_a_record_that_was_altered_or_isnt_known_is_refused(tmp_path):
    folder = save_rewriter(tmp_path / "model")
    path = folder / REWRITER_FILE
    content = json.loads(path.read_text())
    path.write_text(path.read_text().replace('"translate"', '"transpose"'))
    with pytest.raises(DamagedFileError, match="altered"):
        Translator.load(folder)
    del content["sha256"]
    write_checksummed_json(path, {**content, "kind": "transpose"})
    with pytest.raises(CheckpointError, match="kind"):
        Translator.load(folder)


def test_in_bf16_an_answer_is_nearly_as_likely(folder):
    exact, rounded = (
        Seq2SeqGenerator.load(folder, device="cpu", precision=precision)("the cat saw")
        for precision in ("auto", "bf16")
    )
    assert rounded.text == exact.text
    assert rounded.score == close(exact.score, "bfloat16")
    assert rounded.score != exact.score
