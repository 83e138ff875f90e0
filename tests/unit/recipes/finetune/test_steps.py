import pytest

from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.finetune.steps import choose_epochs, count_epoch_steps, decide_steps


@pytest.mark.parametrize(
    ("steps_per_epoch", "epochs"), [(1, 20), (10, 20), (11, 19), (50, 4), (67, 3), (2000, 3)]
)
def test_few_examples_are_seen_more_often(steps_per_epoch, epochs):
    assert choose_epochs(FineTuneSettings(), steps_per_epoch) == epochs


def test_epochs_that_are_asked_for_are_those_that_are_trained(capsys):
    assert decide_steps(FineTuneSettings(epochs=1.5), 100) == 150
    assert capsys.readouterr().err == ""
    assert decide_steps(FineTuneSettings(epochs=0.001), 100) == 1
    assert "1 step; with under 100 fine-tuning often learns nothing" in capsys.readouterr().err


def test_a_longer_default_is_told_and_the_papers_isnt(capsys):
    assert decide_steps(FineTuneSettings(), 20) == 200
    assert decide_steps(FineTuneSettings(), 20, has_solved_head=True) == 60
    assert decide_steps(FineTuneSettings(features="linear"), 20) == 0
    assert "training for 10 epochs, since 3 would be 60 steps" in capsys.readouterr().err
    assert decide_steps(FineTuneSettings(), 1000) == 3000
    assert capsys.readouterr().err == ""


def test_the_last_step_of_an_epoch_may_be_smaller():
    assert count_epoch_steps(33, FineTuneSettings(batch_size=16)) == 3
