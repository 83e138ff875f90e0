from types import SimpleNamespace

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.decoders.seq2seq.small import QUICK

from bertkit.decoders.seq2seq import job as rhythm
from bertkit.decoders.seq2seq.job import (
    convert_budget,
    count_epoch_steps,
    count_epochs,
    list_averaged,
)
from bertkit.decoders.seq2seq.order import TokenBatchOrder
from bertkit.decoders.seq2seq.settings import TranslateSettings
from bertkit.training.budget import StepPace


def decide(settings: TranslateSettings, evaluation_seconds: float = 0.0) -> int:
    job = SimpleNamespace(order=ORDER, settings=settings)
    return convert_budget(job, lambda: evaluation_seconds)


ORDER = TokenBatchOrder(np.full(30, 10), 100, 0)  # three steps an epoch


@pytest.mark.parametrize(
    ("num_steps", "step", "expected"),
    [
        (40, 40, (20, 30, 40)),
        (40, 30, (10, 20, 30)),
        (40, 10, (10,)),
        (45, 45, (30, 40, 45)),
        (45, 41, (20, 30, 40)),  # an interruption, whose checkpoint doesn't count
        (45, 0, ()),
    ],
)
def test_the_last_evaluations_are_averaged_whenever_checkpoints_are_made(num_steps, step, expected):
    changes = {"eval_every": 10, "checkpoint_every": 3, "average": 3}
    settings = QUICK.model_copy(update=changes)
    assert list_averaged(settings, num_steps, step) == expected
    assert not list_averaged(settings.model_copy(update={"average": 1}), num_steps, step)


def test_epochs_become_steps_and_steps_epochs():
    assert count_epoch_steps(ORDER, 2.0) == 6
    assert count_epoch_steps(ORDER, 0.34) == 1
    assert count_epoch_steps(ORDER, 0.001) == 1
    assert count_epoch_steps(ORDER, 1.67) == 5
    assert count_epochs(ORDER, 5) == close(1 + 2 / 3)


def test_the_budget_pays_for_measuring_and_judging(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(rhythm, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def measure(*_: object) -> StepPace:
        now[0] += 30.0
        return StepPace(1.0, 2.0, 100, 1.0, 1)

    monkeypatch.setattr(rhythm.budget, "measure_pace", measure)
    assert decide(TranslateSettings()) == 180  # 60 epochs
    assert decide(TranslateSettings(epochs=2)) == 6
    assert decide(TranslateSettings(steps=7)) == 7
    now[0], given = 100.0, TranslateSettings(minutes=10)
    capsys.readouterr()
    assert decide(given, 70.0) == int((600 - 30 - 70) * 0.98 - 22 * 2)
    assert "held-out texts" not in capsys.readouterr().err
    assert decide(given, 250.0) == int((600 - 30 - 250) * 0.98 - 22 * 2)
    assert "held-out texts take about 52.0 % of 9.3 minutes; fewer of" in capsys.readouterr().err
    assert decide(given, 4000.0) == 1
    told = capsys.readouterr().err
    assert "at the end takes about 66.7 minutes, and the budget is 10; hold out fewer pairs" in told
    assert "or give a larger --minutes" in told
