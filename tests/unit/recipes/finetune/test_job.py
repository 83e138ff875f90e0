import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import build_model
from tests.unit.recipes.finetune.small import QUICK, TASK, open_job, write_rows
from tests.unit.recipes.stopping import stop_at
from torch.utils.flop_counter import FlopCounterMode

from bertkit.base.errors import ResumeError, SettingsError, StoppedError
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.fine_tuning import (
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertkit.recipes.finetune import job as job_module
from bertkit.recipes.finetune.evaluation import (
    compare_to_baseline,
    evaluate_model,
    measure_baseline,
)
from bertkit.recipes.finetune.job import decide_steps, decode_all, freeze_parameters, sum_loss
from bertkit.recipes.finetune.run import FineTuning, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks import batch as logits_module
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.regress import RegressSettings
from bertkit.training.job import Machine
from bertkit.training.lifecycle import load_checkpoint
from bertkit.training.run import Run


@pytest.mark.parametrize(
    ("what", "frozen"),
    [
        ("none", set()),
        ("embeddings", {"encoder.embeddings"}),
        ("1", {"encoder.embeddings", "encoder.layers.0"}),
        ("encoder", {"encoder.embeddings", "encoder.layers.0", "encoder.layers.1"}),
    ],
)
def test_what_is_frozen_stays(what, frozen):
    model = build_model()
    number = freeze_parameters(model, what, num_layers=2)
    names = {name for name, each in model.named_parameters() if not each.requires_grad}
    assert names == {
        name
        for name, _ in model.named_parameters()
        if any(name.startswith(f"{part}.") for part in frozen)
    }
    sizes = dict(model.named_parameters())
    assert number == sum(sizes[name].numel() for name in names)


def test_more_layers_than_there_are_are_refused():
    with pytest.raises(SettingsError, match="freeze is 3, and the encoder has 2 layers"):
        freeze_parameters(build_model(), "3", num_layers=2)


def test_frozen_layers_keep_their_bits(sources, tmp_path):
    settings = QUICK.model_copy(
        update={"freeze": "1", "layer_decay": 0.5, "epochs": 1.0, "keep": 1}
    )
    finetune(sources, tmp_path / "out", TASK, settings)
    (checkpoint, *_) = list_checkpoints(tmp_path / "out" / "run")
    before = load(sources.model)
    for folder in (tmp_path / "out", checkpoint):
        after = load(folder)
        for name, tensor in after.items():
            is_low = name.startswith(("encoder.embeddings.", "encoder.layers.0."))
            assert torch.equal(tensor, before[name]) == is_low, name


def load(folder: object) -> dict[str, torch.Tensor]:
    tensors = BertModel.from_pretrained(str(folder)).state_dict()
    return {name: tensor for name, tensor in tensors.items() if name.startswith("encoder.")}


@pytest.mark.parametrize(
    ("steps_per_epoch", "epochs"), [(1, 20), (10, 20), (11, 19), (50, 4), (67, 3), (2000, 3)]
)
def test_few_examples_are_seen_more_often(steps_per_epoch, epochs):
    assert decide_steps(FineTuneSettings(), steps_per_epoch) == steps_per_epoch * epochs


def test_epochs_that_are_asked_for_are_those_that_are_trained(capsys):
    assert decide_steps(FineTuneSettings(epochs=1.5), 100) == 150
    assert capsys.readouterr().err == ""
    assert decide_steps(FineTuneSettings(epochs=0.001), 100) == 1
    assert "1 step; with under 100 fine-tuning often learns nothing" in capsys.readouterr().err


def test_a_longer_default_is_told_and_the_papers_isnt(capsys):
    assert decide_steps(FineTuneSettings(), 20) == 200
    assert decide_steps(FineTuneSettings(), 20, has_start=True) == 60
    assert decide_steps(FineTuneSettings(features="last"), 20) == 0
    assert "training for 10 epochs, since 3 would be 60 steps" in capsys.readouterr().err
    assert decide_steps(FineTuneSettings(), 1000) == 3000
    assert capsys.readouterr().err == ""


@pytest.fixture
def job(sources):
    return open_job(sources, TASK, QUICK)


def test_an_epoch_has_each_example_once_and_accumulation_parts_the_step(sources):
    whole = open_job(sources, TASK, QUICK)
    parted = open_job(sources, TASK, QUICK.model_copy(update={"accumulate": 3}))
    seen = [number for step in range(5) for number in whole.batches_at(step)[0].numbers]
    assert sorted(seen) == list(range(40))
    parts = parted.batches_at(0)
    assert [len(part.numbers) for part in parts] == [2, 3, 3]
    assert [n for part in parts for n in part.numbers] == list(whole.batches_at(0)[0].numbers)


def test_layers_learn_at_the_rates_that_were_asked_for(sources):
    job = open_job(sources, TASK, QUICK.model_copy(update={"layer_decay": 0.5}))
    scales = job.learning_rate_scales
    assert scales["classifier.weight"] == scales["pooler.dense.bias"] == 1.0
    assert scales["encoder.layers.1.attention.output.weight"] == 0.5
    assert scales["encoder.layers.0.feed_forward.up.bias"] == 0.25
    assert scales["encoder.embeddings.word.weight"] == 0.125


def test_logits_in_parts_give_the_same_metrics_and_answers(job, monkeypatch):
    whole, final = job.evaluate(), evaluate_model(job)
    computed = []
    compute = job_module.compute_logits

    def note(compute_batch, encoded, **sizes):
        computed.append(len(encoded))
        return compute(compute_batch, encoded, **sizes)

    monkeypatch.setattr(job_module, "compute_logits", note)
    monkeypatch.setattr(logits_module, "MAX_SCORES", 10)  # of two labels and sixteen examples
    assert job.evaluate() == close(whole, "float32")
    assert computed == [5, 5, 5, 1]
    parted = evaluate_model(job)
    assert computed[4:] == [4, 5, 5, 5, 1]  # every fourth, for the temperature
    assert [each.label for each in parted.predictions] == [each.label for each in final.predictions]
    assert parted.baseline == final.baseline


def test_the_held_out_loss_is_the_mean_over_labels(job):
    logits = job.held_out_logits(range(len(job.dev)))
    log_shares = [row[0] - math.log(np.exp(row[0].astype(float)).sum()) for row in logits]
    labels = [one.labels[0] for one in job.dev]
    expected = -np.mean([row[label] for row, label in zip(log_shares, labels, strict=True)])
    loss, num_labels = sum_loss(job.task, job.dev, logits)
    assert loss / num_labels == close(expected, "float32")
    found = job.evaluate()
    assert found["loss"] == close(expected, "float32")
    predictions = decode_all(job.task, job.data.dev.examples, job.dev, logits)
    assert (
        found["accuracy"] == job.task.score(job.data.dev.examples, predictions).metrics["accuracy"]
    )


def test_a_frozen_layer_stays_frozen_when_a_run_is_taken_up(sources, tmp_path, monkeypatch):
    settings = QUICK.model_copy(update={"freeze": "1"})
    stop_at(3, monkeypatch)
    with pytest.raises(StoppedError):
        finetune(sources, tmp_path / "out", TASK, settings)
    run = Run(tmp_path / "out" / "run")
    checkpoint = run.newest_checkpoint()
    machine = Machine.choose(settings)
    job = FineTuning(sources, TASK, settings).open(checkpoint, machine)
    assert job.source == {}
    loaded = load_checkpoint(job, run, 4)
    frozen = {name for name, each in loaded.model.named_parameters() if not each.requires_grad}
    assert "encoder.layers.0.attention.output.weight" in frozen
    assert "encoder.layers.1.attention.output.weight" not in frozen
    with pytest.raises(ResumeError, match="is missing; remove"):
        load_checkpoint(job, run, 3)


def test_the_baseline_of_several_labels_says_those_that_most_texts_have(sources, tmp_path):
    rows = [{"text": "the cat", "label": labels} for labels in (["x", "y"], ["x"], ["x"], [])]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    several = dataclasses.replace(sources, train=str(path), dev=str(path))
    job = open_job(several, TASK.model_copy(update={"multi_label": True}), QUICK)
    assert job.batches_at(0)[0].labels.shape[1] == 2
    assert np.isfinite(job.evaluate()["loss"])
    baseline = measure_baseline(job)
    assert baseline["micro_f1"] == close(2 * 3 / (4 + 4))
    assert baseline["subset_accuracy"] == 0.5


def test_a_number_has_no_baseline(sources, tmp_path):
    path = write_rows(tmp_path / "train.csv", ["the cat,1", "a dog,2.5"])
    numbers = dataclasses.replace(sources, task="regress", train=str(path), dev=str(path))
    job = open_job(numbers, RegressSettings(max_length=12), QUICK)
    assert measure_baseline(job) == {}


def test_held_out_examples_that_are_the_training_data_are_told(sources, tmp_path, capsys):
    open_job(sources, TASK, QUICK)
    assert "--dev is the training data" not in capsys.readouterr().err
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(sources.train).read_bytes())
    open_job(dataclasses.replace(sources, dev=str(copy)), TASK, QUICK)
    assert "--dev is the training data" in capsys.readouterr().err


def test_labels_steer_no_terminal(sources, tmp_path, capsys):
    path = write_rows(tmp_path / "train.csv", ['"the cat","x\ny\x1b[31m"', "a dog,good"])
    open_job(dataclasses.replace(sources, train=str(path), dev=str(path)), TASK, QUICK)
    assert "labels: good 1, x y␛[31m 1" in (told := capsys.readouterr().err)
    assert "\x1b" not in told


def test_without_a_temperature_there_is_nothing_before_it(job, monkeypatch):
    def number(name):
        fit = lambda task, *_: dataclasses.replace(task, numbers={name: 0.7})  # noqa: E731
        monkeypatch.setattr(Classify, "fit_numbers", fit)
        return evaluate_model(job)

    assert number("threshold").before is None
    found = number("temperature")
    assert found.before is not None
    assert found.evaluation.confidences.mean() != found.before.confidences.mean()


@pytest.mark.parametrize(
    ("value", "baseline", "is_told"),
    [
        (0.9, {"f1": 0.5}, False),
        (0.5, {"f1": 0.5}, True),
        (math.nan, {"f1": 0.5}, True),
        (0.1, {}, False),
        (1.0, {"f1": 1.0}, False),
        (0.5, {"f1": math.nan}, False),
    ],
)
def test_no_better_than_the_baseline_is_told(value, baseline, is_told):
    warning = compare_to_baseline("f1", Evaluation({"f1": value}), baseline)
    assert (warning is not None) == is_told


@pytest.mark.parametrize("kind", [BertForSequenceClassification, BertForTokenClassification])
@pytest.mark.parametrize("freeze", ["none", "encoder"])
def test_operations_are_those_that_pytorch_counts(job, kind, freeze):
    (batch,) = job.batches_at(0)
    # With dropout, attention is matrix products that PyTorch counts.
    changes = {"num_hidden_layers": 2, "attention_probs_dropout_prob": 0.1}
    config = job.model.config.model_copy(update=changes)
    model = kind(config)
    freeze_parameters(model, freeze, config.num_hidden_layers)
    is_pooled = kind is BertForSequenceClassification
    read = model.encoder.summary_states if is_pooled else model.encoder
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        read(batch.packed)
    expected = counter.get_total_flops() * (3 if freeze == "none" else 1)
    # What sequences of a batch are padded to each other isn't counted.
    assert model.count_operations(batch.packed) == close(expected, within=0.02 * expected)
