"""A run whose reader, disk or terminal goes away: it ends as it would have, with its checkpoint."""

import signal
from dataclasses import replace

import pytest
from tests.faults.children import NUM_STEPS, list_differences, newest, read_trace, run_child, send
from tests.faults.terminal import (
    PANEL,
    run_in_terminal,
    run_onto_full_disk,
    run_under_nohup,
    run_without_reader,
)
from tests.faults.watch import Errand, Place

PLACE = Place(10, "before the update", 0)


@pytest.fixture
def errand(workshop, tmp_path):
    run = tmp_path / "run"
    trace, messages = tmp_path / "trace", tmp_path / "messages"
    return Errand(workshop.words(run), run, trace, messages, {PLACE: [signal.SIGHUP]})


@pytest.mark.parametrize(("work", "code"), [(run_without_reader, 0), (run_onto_full_disk, 2)])
def test_training_whose_messages_go_nowhere_is_finished(undisturbed, errand, work, code):
    assert run_child(work, replace(errand, signals={})) == code
    assert list_differences(undisturbed[0], errand.run) == []


def test_a_terminal_that_is_closed_leaves_a_checkpoint(workshop, undisturbed, errand):
    assert run_child(run_in_terminal, errand) == 75
    assert PANEL in errand.messages.read_bytes()
    assert newest(errand.run).name == f"step-{PLACE.step:08}"
    assert max(place.step for place in read_trace(errand.trace)) == PLACE.step
    assert send(workshop.words(errand.run), errand.run).code == 0
    assert list_differences(undisturbed[0], errand.run) == []


def test_under_nohup_a_closed_terminal_is_nothing(errand):
    assert run_child(run_under_nohup, errand) == 0
    assert newest(errand.run).name == f"step-{NUM_STEPS:08}"
