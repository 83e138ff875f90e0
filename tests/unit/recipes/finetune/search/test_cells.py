import pytest
from tests.unit.recipes.finetune.small import QUICK

from bertkit.base.errors import SettingsError
from bertkit.recipes.finetune.search.cells import Cell, Trial, list_trials
from bertkit.recipes.finetune.settings import FineTuneSettings, SearchSettings


def test_the_papers_grid_is_eighteen_runs_a_seed():
    trials = list_trials(SearchSettings(search="paper", seeds=2), FineTuneSettings(seed=5))
    assert len({trial.place for trial in trials}) == len(trials) == 36
    assert trials[0].place == "lr5e-05-batch16-epochs2/seed5"
    assert trials[1] == Trial(Cell(5e-5, 16, 2.0), 6)
    assert {trial.cell.learning_rate for trial in trials} == {5e-5, 3e-5, 2e-5}
    assert {trial.cell.batch_size for trial in trials} == {16, 32}
    assert {trial.cell.epochs for trial in trials} == {2.0, 3.0, 4.0}


def test_seeds_alone_are_one_cell_of_what_was_asked_for():
    trials = list_trials(SearchSettings(seeds=3), QUICK)
    assert [trial.seed for trial in trials] == [0, 1, 2]
    assert {trial.cell for trial in trials} == {Cell(1e-2, 8, 4.0)}
    chosen = trials[2].choose(QUICK)
    assert chosen == QUICK.model_copy(update={"seed": 2, "split_seed": 0})
    split = QUICK.model_copy(update={"split_seed": 7})
    assert trials[2].choose(split).split_seed == 7
    (trial, *_) = list_trials(SearchSettings(seeds=2), FineTuneSettings())
    assert trial.place == "batch32/seed0"
    assert trial.choose(FineTuneSettings()).epochs is None
    assert "epochs" not in trial.cell.describe()


def test_what_a_search_chooses_cant_be_given_too():
    with pytest.raises(SettingsError, match="leave out --learning-rate and --epochs, or the sear"):
        list_trials(SearchSettings(search="paper"), FineTuneSettings(learning_rate=1e-3, epochs=3))


def test_settings_that_dont_go_together_are_told_with_their_cell():
    (trial, *_) = list_trials(SearchSettings(search="paper"), FineTuneSettings(accumulate=20))
    with pytest.raises(SettingsError, match=r"batch 16, epochs 2: accumulate \(20\)"):
        trial.choose(FineTuneSettings(accumulate=20))
