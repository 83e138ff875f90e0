"""An encoder trained on pairs of texts with the same label, where that is better."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tests.unit.recipes.finetune.small import TASK, make_rows, open_job, write_rows

from bertkit.base.errors import InputError, SettingsError
from bertkit.recipes.finetune import few_shot
from bertkit.recipes.finetune.few_shot import NUM_PAIRS, sample_pairs, train_if_better
from bertkit.recipes.finetune.run import finetune, solve_only
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify import ClassifySettings

FEW = TASK.model_copy(update={"few_shot": True})


@pytest.fixture
def job(sources, tmp_path):
    table = write_rows(tmp_path / "few.csv", make_rows(16, 4))
    return open_job(replace(sources, train=str(table)), FEW, FineTuneSettings(device="cpu"))


def read_weights(job):
    return {name: each.clone() for name, each in job.model.state_dict().items()}


def test_pairs_have_one_label_and_labels_take_turns(job):
    chosen, labels = sample_pairs(job.frozen, range(16), np.random.default_rng(0))
    assert len(chosen) == len(labels) == 2 * NUM_PAIRS
    assert labels == [int(job.frozen.examples[number].label_rows[0]) for number in chosen]
    assert labels[::2] == labels[1::2]
    assert labels.count(0) == labels.count(1)
    assert all(one != other for one, other in zip(chosen[::2], chosen[1::2], strict=True))
    alone, _ = sample_pairs(job.frozen, [0, 1], np.random.default_rng(0))
    assert set(alone) == {0, 1}


def test_the_encoder_is_trained_where_held_out_rows_gain(job, tmp_path, monkeypatch, capsys):
    calls = []

    def predict(run, frozen, kept, fold):  # knows the label after each training
        calls.append(fold)
        sure = 4.0 * (len(calls) % 2 == 0)
        labels = {number: int(frozen.examples[number].label_rows[0]) for number in fold}
        return {
            number: np.array([[sure * (1 - label), sure * label]], dtype=np.float32)
            for number, label in labels.items()
        }

    monkeypatch.setattr(few_shot, "predict_fold", predict)
    before = read_weights(job)
    assert train_if_better(tmp_path, job)
    assert "it is trained" in capsys.readouterr().err
    after = read_weights(job)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert not any(each.requires_grad for each in job.model.encoder.parameters())


def test_an_encoder_that_gains_nothing_stays_as_it_is(job, tmp_path, monkeypatch, capsys):
    same = np.zeros((1, 2), dtype=np.float32)
    monkeypatch.setattr(
        few_shot, "predict_fold", lambda run, frozen, kept, fold: dict.fromkeys(fold, same)
    )
    before = read_weights(job)
    assert not train_if_better(tmp_path, job)
    assert "the head alone is solved" in capsys.readouterr().err
    after = read_weights(job)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_same_command_makes_the_same_model(sources, tmp_path):
    table = write_rows(tmp_path / "few.csv", make_rows(12, 4))
    given = replace(sources, train=str(table))
    results = [
        finetune(given, tmp_path / name, FEW, FineTuneSettings(device="cpu"))
        for name in ("one", "other")
    ]
    one, other = ((result.output / "model.safetensors").read_bytes() for result in results)
    assert one == other
    assert results[0].saved.num_steps == 0
    assert results[0].saved.metrics["accuracy"] >= 0.5


def test_too_many_rows_and_settings_of_training_are_refused(job, tmp_path, monkeypatch):
    monkeypatch.setattr(few_shot, "FOLDS_FOR_ALL", 15)
    with pytest.raises(InputError, match="few_shot is for at most 15 rows, and there are 16"):
        train_if_better(tmp_path, job)
    with pytest.raises(SettingsError, match="solves the head without training steps: leave out"):
        solve_only(FineTuneSettings(epochs=3))
    with pytest.raises(ValidationError, match="`few_shot` is for one label per text"):
        ClassifySettings(few_shot=True, multi_label=True)


def test_labels_of_one_row_are_refused(sources, tmp_path):
    table = write_rows(tmp_path / "few.csv", make_rows(3, 2))
    job = open_job(replace(sources, train=str(table)), FEW, FineTuneSettings(device="cpu"))
    with pytest.raises(InputError, match="few_shot needs at least two rows of each label"):
        train_if_better(tmp_path, job)


@pytest.mark.parametrize(("gain", "error"), [(0.1, 0.3), (-0.1, 0.1)])
def test_a_gain_within_its_error_is_none(job, tmp_path, monkeypatch, capsys, gain, error):
    monkeypatch.setattr(few_shot, "measure_gain", lambda gains: (gain, error))
    assert not train_if_better(tmp_path, job)
    word = "lowers" if gain > 0 else "raises"
    assert f"{word} the loss of held-out rows by 0.100" in capsys.readouterr().err
