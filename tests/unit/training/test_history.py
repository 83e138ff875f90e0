"""A log column by column: what isn't a number leaves a gap, and no log takes endless memory."""

import math

import pytest

from bertkit.training.history import MAX_COLUMNS, MAX_INCIDENTS, Columns, TrainingHistory, average


def train(step: int, **values: object) -> dict[str, object]:
    return {"event": "train", "step": step, **values}


def test_what_a_row_lacks_is_a_gap_in_its_column():
    columns = Columns()
    for row in ({"step": 1, "loss": 3.0}, {"step": 2, "norm": 0.5}, {"step": 3, "loss": None}):
        columns.add(row)
    assert list(columns["step"]) == [1, 2, 3]
    assert columns["loss"][0] == 3.0
    assert [math.isnan(value) for value in columns["loss"]] == [False, True, True]
    assert [math.isnan(value) for value in columns["norm"]] == [True, False, True]
    assert columns.points("step", "loss") == [(1, 3.0)]
    assert columns.points("step", "speed") == []
    assert columns.points("speed", "step") == []
    assert columns.last("norm") == 0.5
    assert columns.last("speed") is None


@pytest.mark.parametrize("value", [True, "3", [3], {"a": 3}, 10**400, -(10**400), 1e200])
def test_what_cannot_be_drawn_is_no_number(value):
    columns = Columns()
    columns.add({"step": 1, "loss": value})
    assert columns.names == ["step"]


def test_a_log_with_endless_names_has_an_end():
    columns = Columns()
    columns.add({f"n{number}": number for number in range(3 * MAX_COLUMNS)})
    assert columns.names == [f"n{number}" for number in range(MAX_COLUMNS)]
    events = ({"event": "spike", "step": step} for step in range(2 * MAX_INCIDENTS))
    history = TrainingHistory.from_rows(events)
    assert len(history.incidents) == MAX_INCIDENTS
    assert history.num_incidents == {"spike": 2 * MAX_INCIDENTS}


def test_an_evaluation_is_at_the_time_of_the_step_before():
    rows = [
        {"event": "eval", "step": 0, "loss": 9.0},
        train(1, elapsed_seconds=5.0),
        train(2, elapsed_seconds=8.0),
        {"event": "eval", "step": 2, "loss": 7.0},
    ]
    held_out = TrainingHistory.from_rows(rows).held_out
    assert held_out.points("elapsed_seconds", "loss") == [(0.0, 9.0), (8.0, 7.0)]


def test_steps_are_counted_where_the_last_was_not_applied():
    rows = [train(1), train(2), {"event": "not-finite", "step": 3}]
    assert TrainingHistory.from_rows(rows).num_steps == 3
    assert TrainingHistory.from_rows([*rows, train(4)]).num_steps == 4
    assert TrainingHistory.from_rows([{"event": "eval", "step": 0}]).num_steps == 0
    assert TrainingHistory.from_rows([{"event": "spike", "step": 10**400}, train(4)]).num_steps == 4


def test_an_early_end_is_no_incident():
    history = TrainingHistory.from_rows([{"event": "ended-early", "step": 4, "best_step": 2}])
    assert history.has_ended_early
    assert not history.incidents


def test_means_are_of_equally_many_points_and_stand_at_the_last():
    points = [(float(x), 2.0 * x) for x in range(1, 8)]
    assert average(points, 3) == [(3, 4.0), (6, 8.0), (7, 10.0)]
    assert average(points, 7)[-1] == average(points, 3)[-1]
    assert average(points[:1], 7) == points[:1]
    assert average([], 3) == []


def test_the_last_mean_does_not_leap_where_the_last_batch_is_one_example():
    points = [*((float(step), 1.0) for step in range(1, 9)), (9.0, 6.0)]
    assert average(points)[-1] == (9.0, 2.0)
