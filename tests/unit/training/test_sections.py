"""What curves and tables say of a history."""

from tests.closeness import close

from bertkit.reports.report import Paragraph, Report, Table, render_report
from bertkit.training.history import TrainingHistory
from bertkit.training.sections import (
    LOSS,
    PACE,
    SPEED,
    compare_curves,
    draw_curves,
    tabulate_choices,
    tabulate_speed,
)

COURSE = TrainingHistory.from_rows(
    [
        {"event": "eval", "step": 0, "loss": 4.0},
        *(
            {
                "event": "train",
                "step": step,
                "loss": 4 - step / 100,
                "tokens_per_second": 100.0,
                "share_of_peak": 0.5,
                "elapsed_seconds": 30.0 * step,
            }
            for step in range(1, 201)
        ),
        {"event": "eval", "step": 200, "loss": 2.1},
    ]
)


def test_a_curve_has_the_means_of_training_and_each_evaluation():
    [chart] = draw_curves(COURSE, [LOSS, *PACE])  # the others have no points
    training, held_out = chart.series
    assert len(training.points) == 100
    assert training.points[-1] == (200, close(2.02))
    assert held_out.points == [(0, 4.0), (200, 2.1)]


def test_runs_share_a_chart_for_each_part_that_has_points():
    charts = compare_curves([("a", COURSE), ("b", COURSE)], [LOSS, SPEED[0]])
    assert [chart.title for chart in charts] == [
        "Loss, training",
        "Loss, held out",
        "Speed, training",
    ]
    assert [series.name for series in charts[0].series] == ["a", "b"]


def test_speeds_are_told_by_their_median_and_tenths():
    rows = [
        {"event": "train", "step": step, "tokens": step, "tokens_per_second": float(step)}
        for step in range(1, 101)
    ]
    table = tabulate_speed(TrainingHistory.from_rows(rows))
    assert ["steps", 100] in table.rows
    html = render_report(Report("", "", [table]))
    assert "50.500 (11.000–90.000)" in html
    assert "not defined" in html  # no row has a time


def test_only_what_differs_from_its_default_is_told():
    assert isinstance(tabulate_choices({"a": 1}, {"a": 1, "b": 2}), Paragraph)
    table = tabulate_choices({"a": 1, "b": None, "c": [1]}, {"a": 2, "b": None})
    assert isinstance(table, Table)
    assert table.rows == [["a", "1", "2"], ["c", "[1]", "no default"]]
