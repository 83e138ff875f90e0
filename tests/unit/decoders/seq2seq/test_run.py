"""The vocabulary of a new model: its size decides how many characters it may have."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.decoders.seq2seq.small import (
    QUICK,
    SHORT,
    make_pairs,
    open_job,
    save_encoder,
    write_sides,
)
from tests.unit.inference.small import save_small
from tests.unit.recipes.reading import Reading
from tests.unit.recipes.stopping import read_files, stop_at
from tests.unit.training.jobs import vary

from bertkit.base.errors import (
    InputError,
    MissingFileError,
    ResumeError,
    SettingsError,
    StoppedError,
)
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.decoders.generation.abstractive import AbstractiveSummarizer
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator, Translator
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq import evaluation as evaluation_module
from bertkit.decoders.seq2seq import examples
from bertkit.decoders.seq2seq import run as recipe
from bertkit.decoders.seq2seq.examples import PairFiles, PairSet
from bertkit.decoders.seq2seq.job import Seq2SeqJob
from bertkit.decoders.seq2seq.run import Seq2SeqTraining, train_seq2seq, train_tokenizer
from bertkit.decoders.seq2seq.settings import SummarizeSettings, TranslateSettings
from bertkit.models.bert.heads import BertForMaskedLM

HAN = [chr(0x4E00 + number) for number in range(1800)]


@pytest.mark.parametrize(("vocab_size", "num_letters"), [(2000, 1000), (6000, 1500), (8000, 1800)])
def test_a_larger_vocabulary_has_more_characters(vocab_size, num_letters):
    settings = TranslateSettings(vocab_size=vocab_size)
    tokenizer = train_tokenizer([[" ".join(HAN)], []], settings)
    assert sum(letter in tokenizer.vocabulary for letter in HAN) == num_letters


def test_more_characters_than_entries_are_refused_without_a_flag_that_is_not_there():
    with pytest.raises(SettingsError, match=r"at least 1005, or keep fewer characters$"):
        train_tokenizer([[" ".join(HAN)], []], TranslateSettings(vocab_size=500))


def test_it_learns_to_translate(whole):
    saved = json.loads((whole / "metrics.json").read_text())
    assert saved["metrics"]["bleu"] > 80
    assert saved["baseline"]["bleu"] < 10
    assert saved["signatures"]["bleu"].startswith("nrefs:1|")
    assert (saved["num_steps"], saved["train"]["num_pairs"]) == (80, 240)
    translate = Translator.load(whole, device="cpu")
    assert translate("two three").text == "zwei drei"


def test_the_folder_has_all_that_is_known_and_no_checkpoint(whole):
    assert set(read_files(whole)) >= {
        "README.md",
        "bertkit_seq2seq.json",
        "config.json",
        "metrics.json",
        "model.safetensors",
        "report.html",
        "tokenizer.json",
        "vocab.txt",
    }
    assert not list_checkpoints(whole / "run")
    told = json.loads((whole / "tokenizer_config.json").read_text())["model_max_length"]
    assert told == SHORT.max_length
    page = (whole / "report.html").read_text()
    assert "Sample outputs" in page
    assert "Loss (training loss with label smoothing)" in page
    card = (whole / "README.md").read_text()
    assert "pipeline_tag: translation" in card
    assert "trained from random weights" in card.lower()


def test_a_wrong_call_leaves_nothing_behind(files, tmp_path):
    short = tmp_path / "short.de"
    short.write_text("eins\n")
    empty = write_sides(tmp_path, "empty", [("", "eins"), ("", "zwei")])
    cases = [
        (PairFiles((files.train[0], short)), InputError, "240 lines and .* 1;"),
        (PairFiles(empty), InputError, "no pair with text on both sides"),
        (PairFiles((*files.train, short)), InputError, "--train takes one file"),
        (PairFiles((files.train[0], tmp_path)), InputError, "folder or a pipe"),
        (PairFiles((files.train[0], tmp_path / "no.de")), MissingFileError, "doesn't exist"),
        (PairFiles((files.train[0],)), InputError, "--format"),
        (PairFiles((Path("hub:owner/name"),)), InputError, "save its pairs to a file first"),
    ]
    for wrong, kind, message in cases:
        with pytest.raises(kind, match=message):
            train_seq2seq(wrong, tmp_path / "out", QUICK)
        assert not (tmp_path / "out").exists()


def test_long_pairs_are_left_out_or_cut_and_counted(files, tmp_path, capsys):
    pairs = [*make_pairs(20, 5), (" ".join(["one"] * 30), "eins"), ("one", "eins " * 30)]
    long = PairFiles(write_sides(tmp_path, "long", pairs), files.dev)
    job = open_job(long, QUICK)
    assert (len(job.train), job.data.train.counts.num_too_long) == (20, 2)
    cutting = QUICK.model_copy(update={"long_texts": "truncate"})
    job = open_job(long, cutting)
    counts = job.data.train.counts
    assert (len(job.train), counts.num_cut, counts.num_cut_targets) == (22, 2, 1)
    assert "long.en and long.de: of 1 of them the target was truncated" in (capsys.readouterr().err)
    assert job.train.sources.lengths.max() == 16
    assert job.train.targets.lengths.max() == 17  # with [CLS], which nobody writes
    only = PairFiles(write_sides(tmp_path, "only", pairs[-2:]), files.dev)
    with pytest.raises(InputError, match="all 2 pairs"):
        open_job(only, QUICK)


def test_without_held_out_pairs_a_share_is_held_out_and_equal_texts_stay_together(tmp_path):
    pairs = [("one", "eins"), ("one", "ein"), ("two", "zwei"), ("three", "drei")] * 2
    whole = PairSet.read(write_sides(tmp_path, "all", pairs), QUICK)
    train, dev = whole.hold_out(0.4, seed=0)
    assert set(train.sources).isdisjoint(dev.sources)
    assert len(train.examples) + len(dev.examples) == 8
    assert whole.hold_out(0.4, seed=0) == (train, dev)
    same = PairSet.read(write_sides(tmp_path, "same", [("one", "eins")] * 4), QUICK)
    with pytest.raises(InputError, match="--dev"):
        same.hold_out(0.4, seed=0)


def test_a_share_of_many_pairs_is_bounded_and_texts_stay_together(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "MOST_HELD_OUT", 10)
    pairs = [(f"one {number // 3}", f"eins {number}") for number in range(300)]
    whole = PairSet.read(write_sides(tmp_path, "all", pairs), QUICK)
    train, dev = whole.hold_out(0.5, seed=0)
    assert (len(dev.examples), len(train.examples)) == (9, 291)
    assert len(whole.hold_out(0.02, seed=0)[1].examples) == 6
    monkeypatch.setattr(examples, "MOST_HELD_OUT", 2)
    assert len(whole.hold_out(0.5, seed=0)[1].examples) == 3  # one text at least


def test_both_halves_begin_with_an_encoder(files, tmp_path):
    save_encoder(tmp_path / "encoder")
    warm = {"model": str(tmp_path / "encoder"), "size": None, "vocab_size": 6000}
    settings = QUICK.model_copy(update=warm)
    job = open_job(files, settings)
    parent = BertForMaskedLM.from_pretrained(tmp_path / "encoder")
    model, layer = job.model, parent.encoder.layers[1].feed_forward
    for half in (model.encoder, model.decoder):
        for name, weight in half.layers[1].feed_forward.state_dict().items():
            assert torch.equal(weight, layer.state_dict()[name]), name
    assert model.decoder.embeddings.word is model.encoder.embeddings.word
    assert torch.equal(model.masked_lm.dense.weight, parent.masked_lm.dense.weight)
    assert model.config.encoder.hidden_dropout_prob == settings.dropout
    assert "model.safetensors" in job.source["sha256"]
    with pytest.raises(InputError, match=r"max_length \(17\) is more than the model's"):
        open_job(files, settings.model_copy(update={"max_length": 17}))


def test_an_encoder_that_was_moved_is_known_by_its_files(files, tmp_path, monkeypatch, capsys):
    def begin_with(name):
        changes = {"model": str(tmp_path / name), "size": None, "vocab_size": 6000}
        return SHORT.model_copy(update=changes)

    save_encoder(tmp_path / "encoder")
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            train_seq2seq(files, tmp_path / "out", begin_with("encoder"))
    (tmp_path / "encoder").rename(tmp_path / "moved")
    train_seq2seq(files, tmp_path / "out", begin_with("moved"))
    assert "resuming after step 3" in capsys.readouterr().err
    save_encoder(tmp_path / "other", initializer_range=0.3)
    with pytest.raises(ResumeError, match=r"--model .*/encoder → .*/other"):
        train_seq2seq(files, tmp_path / "out", begin_with("other"))


def test_the_mean_of_checkpoints_is_one(files, tmp_path, monkeypatch):
    taken = []
    average = evaluation_module.average_weights

    def remember(states):
        found = [dict(state) for state in states]
        taken.append((found, average(found)))
        return taken[-1][1]

    monkeypatch.setattr(evaluation_module, "average_weights", remember)
    build = evaluation_module.average
    best = {"evaluate": lambda: {"bleu": 101.0, "loss": 0.5}}
    monkeypatch.setattr(evaluation_module, "average", lambda *each: vary(build(*each), **best))
    keeping = SHORT.model_copy(update={"keep": 1})
    result = train_seq2seq(files, tmp_path / "out", keeping)
    ((found, mean),) = taken
    assert len(found) == 2
    name = "decoder.layers.0.cross_attention.query.weight"
    assert_close(mean[name], (found[0][name] + found[1][name]) / 2)
    model = EncoderDecoderModel.from_pretrained(result.output)
    assert torch.equal(model.state_dict()[name], mean[name])
    assert result.saved.averaged_steps == (8, 12)
    assert {8, 12} <= {int(path.name[-8:]) for path in list_checkpoints(tmp_path / "out" / "run")}


@pytest.mark.parametrize("content", [None, pytest.param(b"cut", marks=pytest.mark.exhaustive)])
def test_a_lost_checkpoint_that_was_to_be_averaged_does_not_end_a_run(
    files, tmp_path, monkeypatch, capsys, content
):
    choose = recipe.choose_weights

    def lose(job, run, state):
        (other,) = {8, 12} - {state.best_step}
        weights = run.folder / "checkpoints" / f"step-{other:08}" / "model.safetensors"
        weights.unlink() if content is None else weights.write_bytes(content)
        return choose(job, run, state)

    values = iter((0.0, 1.0, 2.0, 3.0))
    monkeypatch.setattr(Seq2SeqJob, "measure", lambda *_: {"bleu": next(values, 3.0)})
    monkeypatch.setattr(recipe, "choose_weights", lose)
    saved = train_seq2seq(files, tmp_path / "out", SHORT).saved
    assert (saved.best_step, saved.averaged_steps) == (12, ())
    assert "step-00000008" in (told := capsys.readouterr().err)
    assert "no weights are averaged and the best step becomes the model" in told
    assert saved.warnings[0].startswith("a checkpoint to be averaged is missing")


def test_a_model_is_judged_as_it_will_write(files, monkeypatch):
    job = open_job(files, SHORT)
    job.machine = replace(job.machine, precision="bf16")
    is_mixed = []
    stream = Seq2SeqGenerator.stream

    def watch(*arguments, **options):
        is_mixed.append(torch.is_autocast_enabled("cpu"))
        return stream(*arguments, **options)

    monkeypatch.setattr(Seq2SeqGenerator, "stream", watch)
    evaluation_module.evaluate_generation(job)
    evaluation_module.estimate_evaluation_seconds(job)
    assert is_mixed == [False, False]


def test_summaries_are_learned_from_columns_and_scored_by_rouge(tmp_path):
    path = tmp_path / "articles.jsonl"
    rows = [json.dumps({"text": left, "summary": right}) for left, right in make_pairs(40, 1)]
    path.write_text("\n".join([*rows, json.dumps({"text": "one", "summary": ""})]) + "\n")
    values = SHORT.model_dump(exclude={"source_column", "target_column", "long_texts"})
    result = train_seq2seq(PairFiles((path,)), tmp_path / "out", SummarizeSettings(**values))
    saved = result.saved
    assert (saved.kind, saved.metric) == ("summarize", "rougeL")
    assert set(saved.metrics) >= {"rouge1", "rouge2", "rougeL", "word_loss"}
    assert saved.train.num_empty == 1
    assert saved.dev.name == "articles.jsonl, held out"
    summarize = AbstractiveSummarizer.load(result.output, device="cpu")
    assert summarize.saved.decoding.no_repeat_ngram == 3
    assert "pipeline_tag: summarization" in (result.output / "README.md").read_text()


def test_the_hidden_size_is_that_of_the_encoder_or_of_the_new_model(tmp_path):
    save_small(tmp_path / "wide", hidden_size=256)
    asked = [{"model": str(tmp_path / "wide")}, {"size": "tiny"}, {"size": "mini"}]
    recipes = [Seq2SeqTraining(PairFiles(()), TranslateSettings(**given)) for given in asked]
    assert [recipe.find_hidden_size() for recipe in recipes] == [256, 128, 256]


def test_a_config_says_sizes_and_how_halves_are_joined(files, tmp_path):
    path = tmp_path / "config.json"
    sizes = {"num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 3}
    joined = {"shares_embeddings": False, "normalizes_first": True, "positions": "sinusoidal"}
    rest = {"intermediate_size": 40, "attention_probs_dropout_prob": 0.3}
    path.write_text(json.dumps({**sizes, **joined, **rest}))
    config = open_job(files, SHORT.model_copy(update={"size": str(path)})).model.config
    for half in config.halves:
        assert half.to_dict().items() >= {**sizes, **rest}.items()
        assert half.hidden_dropout_prob == SHORT.dropout
    assert config.to_dict().items() >= joined.items()
    path.write_text("[1]")
    with pytest.raises(InputError, match=r"config\.json holds a list; expected a config's object"):
        open_job(files, SHORT.model_copy(update={"size": str(path)}))


def test_files_of_pairs_are_read_once_where_a_run_is_resumed(files, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            train_seq2seq(files, tmp_path / "out", QUICK)
    reading = Reading(monkeypatch)
    train_seq2seq(files, tmp_path / "out", QUICK)
    reading.check_once(*files.paths)
