"""What a run that is taken up keeps, and what is refused."""

import gc
import weakref
from types import SimpleNamespace

import pytest

from bertkit.base.errors import ResumeError
from bertkit.models.bert.config import BertConfig
from bertkit.recipes.pretrain import run as pretraining
from bertkit.recipes.pretrain.job import PretrainingJob, find_trained_length
from bertkit.recipes.pretrain.run import Pretraining, mix_steps
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.record import RunRecord


def record(num_steps: int = 0, threads: str = "2", **settings) -> RunRecord:
    return RunRecord(
        settings=PretrainSettings(**settings).model_dump(mode="json"),
        data_fingerprint="a",
        model={},
        num_steps=num_steps,
        versions={"threads": threads},
    )


def decide(before: RunRecord | None, **settings) -> int:
    """The examples are not asked for where the budget is in steps."""
    wanted = record(threads="1", **settings)
    recipe = Pretraining(None, PretrainSettings(**settings))
    phase = SimpleNamespace(settings=recipe.settings)
    phases = SimpleNamespace(phases=[(phase, 0.75), (phase, 0.25)])
    return recipe.decide_steps(phases, before, wanted)


def test_a_new_run_gets_the_steps_that_were_asked_for():
    assert decide(None, steps=40) == 40


def test_an_unfinished_run_may_grow_and_not_shrink():
    assert decide(record(40, steps=40), steps=60) == 60
    with pytest.raises(ResumeError, match=r"has 40 steps, and the new budget is 6; .*only grow"):
        decide(record(40, steps=40), steps=6)


def test_minutes_may_grow_and_not_shrink(monkeypatch):
    monkeypatch.setattr(pretraining, "count_steps", lambda _: 30)
    assert decide(record(40, minutes=2.0), minutes=3.0) == 30
    with pytest.raises(ResumeError, match=r"has --minutes 2, and the new budget is 1; .*only grow"):
        decide(record(40, minutes=2.0), minutes=1.0)
    with pytest.raises(ResumeError, match=r"has 40 steps, and the new budget is 30; .*only grow"):
        decide(record(40, steps=40), minutes=1.0)


def test_a_run_in_minutes_has_the_steps_that_it_planned_last():
    before = record(40, minutes=2.0).model_copy(update={"plans": {0: 80, 30: 60}})
    assert decide(before, steps=70) == 70
    with pytest.raises(ResumeError, match="has 60 steps, and the new budget is 50"):
        decide(before, steps=50)


@pytest.mark.parametrize(("shares", "expected"), [((1.0,), 100), ((0.9, 0.1), 71)])
def test_a_budget_pays_for_the_steps_of_each_phase(shares, expected):
    """Of 100 steps or 20 that fit: 64 short and 7 long ones."""
    assert mix_steps(shares, [100, 20][: len(shares)]) == expected


@pytest.mark.parametrize("long_length", [None, 512])
def test_a_job_is_freed_as_soon_as_it_is_dropped(long_length):
    class Planned(PretrainingJob):
        def __init__(self) -> None:
            self.settings = PretrainSettings(steps=9, long_length=long_length)

        def plan_examples(self, settings: PretrainSettings) -> None:
            self.settings = settings

    job = Planned()
    job.set_num_steps(9, None)
    left = weakref.ref(job)
    gc.disable()
    try:
        del job
        assert left() is None
    finally:
        gc.enable()


def test_the_same_budget_in_minutes_is_not_measured_again():
    assert decide(record(77, minutes=2.0), minutes=2.0) == 77


def test_another_machine_is_told_and_the_first_one_stays_on_record(capsys):
    now = record(threads="1", steps=40)
    kept = record(40, steps=40).list_kept(now, now.versions)
    assert "threads: '2' → '1'" in capsys.readouterr().err
    assert kept["versions"] == {"threads": "2"}
    record(40, threads="1", steps=40).list_kept(now, now.versions)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "told", "length"),
    [
        ({}, None, 128),
        ({"objective": "causal"}, None, 128),
        ({"objective": "causal", "model": "m"}, 512, 128),
        ({"model": "m"}, None, None),  # a model of others, most likely trained on them all
        ({"model": "m"}, 64, 128),
        ({"model": "m", "long_length": 256}, 64, 256),
        ({"long_length": 512}, None, 512),
        ({"model": "m"}, 300, 300),
        ({"model": "m"}, 10**30, 512),
    ],
)
def test_a_run_tells_how_long_the_texts_were_that_its_positions_learned(settings, told, length):
    settings = PretrainSettings(steps=1, max_length=128, **settings)
    assert find_trained_length(settings, told, BertConfig.preset("tiny")) == length
