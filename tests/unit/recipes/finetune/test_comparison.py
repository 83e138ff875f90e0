import math

import pytest
from tests.unit.recipes.finetune.small import QUICK

from bertkit.base.errors import SettingsError
from bertkit.recipes.finetune.comparison import Cell, Comparison, Trial, list_trials
from bertkit.recipes.finetune.settings import FineTuneSettings, GridSearchSettings
from bertkit.reports.report import Report, render_report


def test_the_papers_grid_is_eighteen_runs_a_seed():
    trials = list_trials(GridSearchSettings(search="paper", seeds=2), FineTuneSettings(seed=5))
    assert len({trial.folder for trial in trials}) == len(trials) == 36
    assert trials[0].folder == "lr5e-05-batch16-epochs2/seed5"
    assert trials[1] == Trial(Cell(5e-5, 16, 2.0), 6)
    assert {trial.cell.learning_rate for trial in trials} == {5e-5, 3e-5, 2e-5}
    assert {trial.cell.batch_size for trial in trials} == {16, 32}
    assert {trial.cell.epochs for trial in trials} == {2.0, 3.0, 4.0}


def test_seeds_alone_are_one_cell_of_what_was_asked_for():
    trials = list_trials(GridSearchSettings(seeds=3), QUICK)
    assert [trial.seed for trial in trials] == [0, 1, 2]
    assert {trial.cell for trial in trials} == {Cell(1e-2, 8, 4.0)}
    chosen = trials[2].choose(QUICK)
    assert chosen == QUICK.model_copy(update={"seed": 2, "split_seed": 0})
    split = QUICK.model_copy(update={"split_seed": 7})
    assert trials[2].choose(split).split_seed == 7
    (trial, *_) = list_trials(GridSearchSettings(seeds=2), FineTuneSettings())
    assert trial.folder == "batch32/seed0"
    assert trial.choose(FineTuneSettings()).epochs is None
    assert "epochs" not in trial.cell.describe()


def test_what_a_search_chooses_cant_be_given_too():
    with pytest.raises(SettingsError, match="leave out --learning-rate and --epochs, or the sear"):
        list_trials(
            GridSearchSettings(search="paper"), FineTuneSettings(learning_rate=1e-3, epochs=3)
        )


def test_settings_that_dont_go_together_are_told_with_their_cell():
    (trial, *_) = list_trials(GridSearchSettings(search="paper"), FineTuneSettings(accumulate=20))
    with pytest.raises(SettingsError, match=r"batch 16, epochs 2: accumulate \(20\)"):
        trial.choose(FineTuneSettings(accumulate=20))


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
    assert lines[0] == "  learning rate 2e-05, batch 16, epochs 2  accuracy 50.0 % (25.0–100.0 %)"
    assert lines[1] == "* learning rate 5e-05, batch 32, epochs 3  accuracy 75.0 % (70.0–80.0 %)"
    assert "Best of 6 runs" in lines[2]
    assert "seed 2, the best median of 2 choices" in lines[2]
    assert "test set" in lines[2]
    (line, last) = compare((ODD, [0.5])).describe()
    assert line == "* learning rate 3e-05, batch 32  accuracy 50.0 %"
    assert "over one seed" in last
    assert "choices" not in last


def test_the_page_shows_all_runs():
    found = compare((LOW, [0.5, 0.25]), (ODD, [math.nan, math.nan]))
    page = render_report(Report("title", "", found.sections())).replace("\N{NO-BREAK SPACE}", " ")
    for words in ("accuracy of the runs", "37.5 % (25.0–50.0 %)", "as decided", "not defined"):
        assert words in page, words
