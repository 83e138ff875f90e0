"""A loss far above recent losses is reported once, and the same after resuming."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.closeness import close
from tests.unit.training.jobs import (
    Points,
    TrainingSettings,
    another,
    build_job,
    load_weights,
    vary,
)

from bertkit.training.history import FEWEST, PAUSE, SpikeFinder
from bertkit.training.log import read_log
from bertkit.training.loop import fit
from bertkit.training.run import Run

SETTINGS = TrainingSettings(batch_size=12, learning_rate=0.02, eval_every=100, checkpoint_every=10)


def normal_course(num_steps: int, seed: int) -> list[float]:
    """A loss that falls as in pre-training, with noise that has heavy tails."""
    choose = random.Random(seed)
    return [
        2.0 + 8.0 * math.exp(-step / 60) + 0.15 * choose.gauss(0, 1) * choose.uniform(0.5, 2.0)
        for step in range(num_steps)
    ]


def find(losses: list[float]) -> list[int]:
    finder = SpikeFinder()
    return [step for step, loss in enumerate(losses, 1) if finder.see(step, loss)]


@pytest.mark.parametrize("seed", range(5))
def test_a_normal_course_has_none(seed):
    assert find(normal_course(4000, seed)) == []


@pytest.mark.parametrize("place", [40, 700])
def test_a_single_spike_is_found_where_it_is(place):
    losses = normal_course(1000, 0)
    losses[place] += 20.0
    assert find(losses) == [place + 1]


def test_the_first_steps_have_no_course_to_compare_with():
    assert find([5.0] * (FEWEST - 1) + [500.0]) == []
    assert find([5.0] * FEWEST + [500.0]) == [FEWEST + 1]


def test_a_steady_course_may_rise_a_little():
    assert find([5.0] * 100 + [5.4]) == []


def test_a_run_that_goes_wrong_is_told_now_and_then_and_not_at_every_step():
    losses = normal_course(300, 0) + [9.0 + step for step in range(200)]
    found = find(losses)
    assert found[0] == 301
    assert all(later - earlier > PAUSE for earlier, later in pairwise(found))


def test_what_is_found_says_how_far_it_stands_out():
    finder = SpikeFinder()
    for step, loss in enumerate([1.0, 2.0, 3.0] * 20, 1):
        assert finder.see(step, loss) is None
    spike = finder.see(61, 50.0)
    assert spike is not None
    assert (spike.loss, spike.expected) == (50.0, 2.0)
    assert spike.deviation == close(1.4826)


def test_a_finder_taken_up_from_a_log_finds_the_same():
    losses = normal_course(400, 1)
    for place in (150, 170, 260, 330):
        losses[place] += 20.0
    finder, rows, found = SpikeFinder(), [], []
    for step, loss in enumerate(losses, 1):
        resumed = SpikeFinder.from_log(rows)
        spike = finder.see(step, loss)
        assert resumed.see(step, loss) == spike
        rows.append({"event": "train", "step": step, "loss": loss})
        if spike is not None:
            rows.append({"event": "spike", "step": step})
            found.append(step)
    assert found == [151, 261, 331]


def train(run: Run, interrupted_at: int | None = None) -> None:
    job = build_job(SETTINGS)

    def collate(examples: Sequence[tuple[int, int, float]]) -> Points:
        step = examples[0][0]
        if step == interrupted_at:
            raise KeyboardInterrupt
        points = job.collate(examples)
        far = 200.0 if step in {50, 62} else 1.0
        return replace(points, targets=far * points.targets)

    state = run.newest_state()
    if state.step:
        load_weights(job, run, state)
    spiked = vary(job, collate=collate)
    fit(spiked, run, state, 80)


def test_a_resumed_run_reports_the_same_spikes(tmp_path, run, capfd):
    train(run)
    assert "step 51: the loss, " in (said := capfd.readouterr().err)
    assert "(examples: step 50)" in said
    rows = [row for row in read_log(run.log_path) if row["event"] == "spike"]
    assert [row["step"] for row in rows] == [51]
    assert rows[0]["examples"] == "step 50"
    assert rows[0]["loss"] > 5 * rows[0]["expected"]
    other = another(run)
    for step in (49, 53, 65):
        with pytest.raises(KeyboardInterrupt):
            train(other, interrupted_at=step)
    train(other)
    assert [row for row in read_log(other.log_path) if row["event"] == "spike"] == rows
