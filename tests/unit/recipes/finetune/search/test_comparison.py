import math

import pytest

from bertkit.recipes.finetune.search.cells import Cell, Trial
from bertkit.recipes.finetune.search.comparison import Comparison
from bertkit.reports.report import Report, render_report

LOW, HIGH, ODD = Cell(2e-5, 16, 2.0), Cell(5e-5, 32, 3.0), Cell(3e-5, 32, None)


def compare(*cells: tuple[Cell, list[float]]) -> Comparison:
    values = {Trial(cell, seed): value for cell, found in cells for seed, value in enumerate(found)}
    return Comparison.build("accuracy", values)


def test_the_best_median_wins_and_of_it_the_best_seed():
    found = compare((LOW, [0.99, 0.1, 0.2]), (HIGH, [0.5, 0.6, 0.4]))
    assert found.best_trial == Trial(HIGH, 1)
    assert found.best.median == 0.5
    assert found.best.spread == (0.4, 0.6)
    assert found.num_runs == 6
    assert compare((LOW, [0.5, 0.25])).best.median == 0.375


def test_of_equals_the_first_is_taken():
    found = compare((LOW, [0.5, 0.5]), (HIGH, [0.5, 0.5]))
    assert found.best_trial == Trial(LOW, 0)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_run_without_a_number_is_the_worst(odd):
    found = compare((LOW, [odd, odd, 0.9]), (HIGH, [odd, 0.3, 0.2]), (ODD, [odd]))
    assert math.isnan(found.outcomes[0].median)
    assert found.best_trial == Trial(HIGH, 1)
    assert found.best.median == 0.2
    assert found.best.spread == (0.2, 0.3)
    assert all(math.isnan(value) for value in found.outcomes[2].spread)
    assert found.to_json()[2] == {
        "learning_rate": 3e-5,
        "batch_size": 32,
        "epochs": None,
        "median": None,
        "lowest": None,
        "highest": None,
        "values": {"0": None},
        "is_best": False,
    }


def test_lines_name_each_choice_and_mark_the_best():
    lines = compare((LOW, [0.5, 0.25, 1.0]), (HIGH, [0.75, 0.7, 0.8])).describe()
    assert lines[0] == "  learning rate 2e-05, batch 16, epochs 2  accuracy 0.5000 (0.2500–1.0000)"
    assert lines[1] == "* learning rate 5e-05, batch 32, epochs 3  accuracy 0.7500 (0.7000–0.8000)"
    assert "Best of 6 runs" in lines[2]
    assert "seed 2, the best median of 2 choices" in lines[2]
    assert "test set" in lines[2]
    (line, last) = compare((ODD, [0.5])).describe()
    assert line == "* learning rate 3e-05, batch 32  accuracy 0.5000"
    assert "over one seed" in last
    assert "choices" not in last


def test_the_page_shows_all_runs():
    found = compare((LOW, [0.5, 0.25]), (ODD, [math.nan, math.nan]))
    page = render_report(Report("title", "", found.sections()))
    for words in ("accuracy of the runs", "0.3750 (0.2500–0.5000)", "as decided", "not defined"):
        assert words in page, words
