"""bf16 means that matrix products run in it, while weights and losses stay float32."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.closeness import close
from tests.unit.training.jobs import TrainingSettings, build_job, vary

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.bert import BertObjective, PreTrainingBatch
from bertkit.training import device as device_module
from bertkit.training.device import measure_peak, mixed_precision
from bertkit.training.log import read_log
from bertkit.training.loop import fit
from bertkit.training.record import RunState

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_loop_trains_and_evaluates_in_the_precision(run, precision):
    settings = TrainingSettings(batch_size=4, learning_rate=0.01, eval_every=1)
    job = build_job(settings)
    seen = set()
    job.model.outer.register_forward_hook(
        lambda module, _, output: seen.add((module.training, output.dtype))
    )
    fit(vary(job, machine=replace(job.machine, precision=precision)), run, RunState(), 2)
    dtype = PRECISIONS[precision]
    assert seen == {(True, dtype), (False, dtype)}
    assert {parameter.dtype for parameter in job.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_logits_have_the_precision_and_losses_are_float32(precision):
    config = BertConfig.preset("tiny", vocab_size=30)
    model = BertForPreTraining(config)
    packed = PackedBatch.from_sequences([[2, 7, 3, 8, 3]], [[0, 0, 0, 1, 1]])
    positions = torch.tensor([1])
    batch = PreTrainingBatch(
        packed=packed,
        positions=positions,
        labels=torch.tensor([9]),
        next_sentence_labels=torch.tensor([0]),
        keys=(),
    )
    with mixed_precision(torch.device("cpu"), precision):
        tokens = model.encoder(packed)
        logits = model.score_words(tokens), model.next_sentence(model.pooler(tokens, packed))
        losses = BertObjective.loss(model, batch).losses
    assert {scores.dtype for scores in logits} == {PRECISIONS[precision]}
    assert {loss.dtype for loss in losses.values()} == {torch.float32}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_peak_is_the_best_of_several_sizes_in_the_precision(monkeypatch, precision):
    times, seen = [0.0], []

    def multiply(left, right):
        seen.append(left.dtype)
        # 16 is slow at first, and 32 at all times.
        times.append(times[-1] + {16: 1e-6 * max(1, 5 - len(seen)), 32: 1e-3}[len(left)])

    monkeypatch.setattr(device_module, "PEAK_SIZES", {"cpu": (16, 32)})
    monkeypatch.setattr(torch, "mm", multiply)
    monkeypatch.setattr(device_module, "time", SimpleNamespace(perf_counter=lambda: times[-1]))
    assert measure_peak(torch.device("cpu"), precision) == close(2 * 16**3 / 1e-6, "float32")
    assert set(seen) == {PRECISIONS[precision]}
    assert len(seen) >= 8


@pytest.mark.parametrize(("peak", "is_there"), [(1e30, True), (1e-30, False)])
def test_a_share_above_the_peak_is_left_out(run, peak, is_there):
    settings = TrainingSettings(batch_size=4, learning_rate=0.01, eval_every=1)
    job = build_job(settings)
    fit(vary(job, machine=replace(job.machine, peak_operations=peak)), run, RunState(), 1)
    (row,) = (row for row in read_log(run.log_path) if row["event"] == "train")
    assert ("share_of_peak" in row) == is_there
