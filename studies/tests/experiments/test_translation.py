"""The study of translation: arms that differ in the net alone, and the same search for all."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.unit.decoders.seq2seq.small import QUICK, make_pairs, write_sides
from tests.unit.training.jobs import vary

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.decoders.generation import seq2seq_generator
from bertkit.decoders.seq2seq.examples import PairFiles
from bertkit.training.budget import StepPace
from bertkit_studies.baselines import translators
from bertkit_studies.experiments import translation
from bertkit_studies.experiments.translation import Translation
from bertkit_studies.recurrent.config import TranslatorConfig
from bertkit_studies.recurrent.translator import AttentionalTranslator
from bertkit_studies.settings import TranslationSettings


def build(**changes) -> Translation:
    values = {"train": ("a.de", "a.en"), "device": "cpu", **changes}
    return Translation(validate(TranslationSettings, values, "flags"))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    files = PairFiles(
        write_sides(folder, "train", make_pairs(40, 1)),
        write_sides(folder, "dev", make_pairs(9, 2)),
    )
    return translators.open_job(files, QUICK)


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("model", [None, "M"])
def test_arms_and_claims_know_each_other(size, model, monkeypatch):
    study = build(size=size, model=model)
    monkeypatch.setattr(Translation, "_encoder_width", 48)
    names = [arm.name for arm in study.arms]
    assert names == ["transformer", "bahdanau", "warm-start"][: 2 if model is None else 3]
    assert {side.arm for one in study.claims for side in (one.better, one.worse)} == set(names)
    assert {one.measure for one in study.claims} <= {one.name for one in study.measures}
    attention, recurrent = study.choose(7, 1_000, model), study.choose_recurrent(7, 1_000)
    chosen = [one.model_dump() for one in (attention, recurrent)]
    same = chosen[0].keys() & chosen[1].keys() - {"learning_rate", "hidden_size"}
    assert same >= {"eval_every", "weight_decay", "seed", "tokens", "schedule", "keep", "dropout"}
    assert {name: chosen[0][name] for name in same} == {name: chosen[1][name] for name in same}
    assert (attention.average, attention.metric, attention.model) == (1, "loss", model)
    assert recurrent.hidden_size == 48
    assert recurrent.learning_rate == 1e-3


def test_seeds_share_the_held_out_pairs():
    chosen = [build().choose(seed, 10, None) for seed in (1, 2)]
    assert [each.seed for each in chosen] == [1, 2]
    assert {each.split_seed for each in chosen} == {0}


def test_columns_are_those_that_are_told():
    study = build(train=("a.tsv",), source_column="de", target_column="en")
    chosen = study.choose(0, 10, None)
    assert (chosen.source_column, chosen.target_column) == ("de", "en")
    assert study.files == PairFiles((Path("a.tsv"),), None)


def test_two_budgets_are_refused():
    with pytest.raises(SettingsError, match="give one budget, not tokens and minutes"):
        build(tokens=5, minutes=1)


@pytest.mark.parametrize(("minutes", "tokens"), [(None, 3_000_000), (2, 120 * 50)])
def test_minutes_become_the_tokens_of_the_slower_net(monkeypatch, minutes, tokens):
    paces = tuple(
        StepPace(
            step_seconds=seconds,
            evaluation_seconds=1.0,
            tokens_per_step=100.0,
            operations_per_step=1.0,
            peak_memory_bytes=1,
        )
        for seconds in (1.0, 2.0)
    )
    trial = translators.Trial(paces, num_held_out=1)
    monkeypatch.setattr(translation, "try_both", lambda *settings: trial)
    decision = build(minutes=minutes).decide()
    assert decision.values["tokens of training"] == tokens
    assert decision.values["held-out pairs"] == 1
    assert "eff:yes" in str(decision.values["BLEU"])  # of a single sentence
    assert decision.seconds == {
        "transformer": tokens / 100 + 20,
        "bahdanau": tokens / 50 + 20,
    }


def test_each_text_is_translated_as_it_would_be_alone(job, monkeypatch):
    torch.manual_seed(0)
    tokenizer = job.tokenizer
    config = TranslatorConfig(
        vocab_size=tokenizer.vocab_size,
        embedding_size=8,
        hidden_size=8,
        attention_size=8,
        decoder_start_token_id=tokenizer.cls_id,
        eos_token_id=tokenizer.sep_id,
    )
    net = AttentionalTranslator(config).eval()
    together = translators.write_translations(net, job)
    monkeypatch.setitem(seq2seq_generator.TOKENS_PER_BATCH, "cpu", 1)
    assert translators.write_translations(net, job) == together
    assert len(together) == 9
    assert len(set(together)) > 1
    assert "[" not in "".join(together)  # no special token is ever written
    short = vary(job, saved=job.saved.model_copy(update={"max_target_length": 3}))
    for text in translators.write_translations(net, short):
        assert len(tokenizer.piece_ids([text])[0]) <= 3


def test_a_drawn_encoder_has_the_sizes_and_not_the_weights(job, tmp_path):
    from bertkit.models.bert.config import BertConfig
    from bertkit.models.bert.heads import BertForMaskedLM

    config = BertConfig(
        vocab_size=job.tokenizer.vocab_size,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    model = BertForMaskedLM(config)
    model.save_pretrained(tmp_path / "M")
    job.tokenizer.save(tmp_path / "M")
    folders = [
        translators.draw_encoder(str(tmp_path / "M"), tmp_path / f"drawn{number}", seed)
        for number, seed in enumerate((1, 1, 2))
    ]
    drawn = [BertForMaskedLM.from_pretrained(folder).state_dict() for folder in folders]
    name = "encoder.embeddings.word.weight"
    assert torch.equal(drawn[0][name], drawn[1][name])
    assert not torch.equal(drawn[0][name], drawn[2][name])
    assert not torch.equal(drawn[0][name], model.state_dict()[name])
    before = (folders[0] / "model.safetensors").stat().st_mtime_ns
    translators.draw_encoder("nothing is read", folders[0], 1)
    assert (folders[0] / "model.safetensors").stat().st_mtime_ns == before


def test_both_translators_write_in_the_precision_of_the_device(job, monkeypatch, tmp_path):
    job = vary(job, machine=replace(job.machine, precision="bf16"))
    seen = []

    def write(net, job):
        seen.append(torch.is_autocast_enabled("cpu"))
        return ["eins"] * len(job.dev)

    net = torch.nn.Linear(1, 1)
    result = SimpleNamespace(checkpoint=tmp_path, metrics={"word_loss": 1.0})
    monkeypatch.setattr(translators, "open_job", lambda *inputs: job)
    monkeypatch.setattr(translators, "train_translator", lambda *inputs: result)
    monkeypatch.setattr(AttentionalTranslator, "from_pretrained", lambda folder: net)
    monkeypatch.setattr(translators, "read_speed", lambda run: 1.0)
    monkeypatch.setattr(translators, "write_translations", write)
    found = translators.train_recurrent(PairFiles((tmp_path,), None), tmp_path, None, None)
    assert seen == [True]
    assert (found.loss, found.parameters) == (1.0, 2.0)
