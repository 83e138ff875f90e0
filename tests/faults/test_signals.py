"""Stop signals to the real command, at places of every kind, and how it goes on after."""

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import cycle, zip_longest
from pathlib import Path

import pytest
from tests.faults.children import (
    CHECKPOINT_EVERY,
    NUM_KILLS,
    NUM_STEPS,
    SEED,
    Ending,
    list_differences,
    list_places,
    newest,
    send,
    try_each,
)
from tests.faults.watch import Place
from tests.logs import rows_without_clock

from bertkit.training.record import LOG_FILE

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STOPPED = 75
FILE = "run/checkpoints/step.partial/file.partial"


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def stop(workshop, run: Path, place: Place, signals: Sequence[signal.Signals]) -> Ending:
    """Begin or take up a run, and send it signals."""
    ending = send(workshop.words(run), run, {place: signals})
    assert place in ending.places
    return ending


def find_problems(
    workshop, reference: Path, run: Path, place: Place, sent: signal.Signals
) -> list[str]:
    """Stop at a place, take the run up, and say what is not as it must be."""
    ending = stop(workshop, run, place, [sent])
    is_done = any(row["step"] == NUM_STEPS for row in evaluations(run))
    found = [
        (ending.code == STOPPED or (is_done and ending.code == 0), f"exit code {ending.code}"),
        (ending.code == 0 or "the same command" in ending.messages, "no word on going on"),
        (max(each.step for each in ending.places) == place.step, "it took another step"),
        (not place.step or newest(run).name == f"step-{place.step:08}", "the step isn't saved"),
        (not list(run.rglob("*.partial")), "litter"),
    ]
    ending = send(workshop.words(run), run)
    problems = [problem for is_well, problem in found if not is_well]
    if ending.code:
        return [*problems, ending.messages]
    # After the last regular checkpoint, that of the stop stays among those to keep instead of it.
    last = NUM_STEPS - NUM_STEPS % CHECKPOINT_EVERY
    free = {f"step-{step:08}" for step in (last, place.step) if last < place.step < NUM_STEPS}
    found = list_differences(reference, run)
    return problems + [name for name in found if free.isdisjoint(Path(name).parts)]


def evaluations(run: Path) -> list[dict]:
    return [row for row in rows_without_clock(run / LOG_FILE) if row["event"] == "eval"]


def draw_stops(whole: Sequence[Place]) -> list[Place]:
    """A place of each kind of operation, then others where more are asked for; no point twice."""
    choose = random.Random(SEED)
    points = sorted({place.point for place in whole})
    kinds: dict[str, list[str]] = {}
    for point in choose.sample(points, len(points)):
        kinds.setdefault(point.split(" run")[0], []).append(point)
    in_turn = [point for turn in zip_longest(*kinds.values()) for point in turn if point]
    num_stops = max(len(kinds), NUM_KILLS // 8)
    return [choose.choice(list_places(whole, point)) for point in in_turn[:num_stops]]


def test_a_signal_anywhere_ends_within_a_step_and_changes_nothing(workshop, undisturbed, tmp_path):
    reference, ending = undisturbed
    stops = list(zip(draw_stops(ending.places), cycle(STOP_SIGNALS), strict=False))
    try_each(stops, lambda stop, run: find_problems(workshop, reference, run, *stop), tmp_path)


@pytest.mark.exhaustive
def test_a_second_signal_ends_a_save_at_once_and_the_checkpoint_before_stays(
    workshop, undisturbed, run
):
    place = Place(12, f"half-way in write {FILE}", 4)
    ending = stop(workshop, run, place, [signal.SIGINT, signal.SIGTERM])
    assert ending.code == STOPPED
    assert "stopped at once; the same command resumes from" in ending.messages
    assert newest(run).name == "step-00000008"
    assert not list(run.rglob("*.partial"))
    after = ending.places[ending.places.index(place) + 1 :]
    assert {each.point.split()[0] for each in after} <= {
        "close", "remove", "remove_empty_folder", "sync_folder", "rename"
    }  # fmt: skip
    assert send(workshop.words(run), run).code == 0
    assert list_differences(undisturbed[0], run) == []


@pytest.mark.parametrize(
    ("place", "budget"),
    [
        (Place(0, "measuring the machine", 0), "--steps 30"),
        (Place(1, "before a step", 0), "--minutes 0.05"),
        (Place(3, "before a micro-batch", 1), "--minutes 0.05"),
        (Place(0, "sync run/settings.json.partial", 0), "--steps 30"),
    ],
)
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_before_the_first_step_it_ends_where_it_is(workshop, run, place, budget, number):
    ending = send([*workshop.words(run, budget), "--json"], run, {place: [number]})
    assert ending.code == STOPPED
    assert ending.places[-1].step == place.step
    assert ending.messages.splitlines()[-1] == (
        "bertkit: stopped before the first checkpoint; the same command starts again"
    )
    names = {path.name for path in run.iterdir()} if run.exists() else set()
    assert names <= {".lock", "settings.json"}


def test_a_terminal_that_interrupts_a_process_of_its_own(workshop, run):
    """Without fork server and watch: what a user's Ctrl-C does."""
    words = workshop.words(run, "--steps 1000000")
    with subprocess.Popen(
        [sys.executable, "-m", "bertkit", *words, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            # an evaluation behind the first checkpoint
            next(line for line in process.stderr if re.match(r"step 6/.*held-out", line))
            os.killpg(process.pid, signal.SIGINT)
            shown, errors = process.stdout.read(), process.stderr.read()
        finally:
            process.kill()
    assert process.returncode == STOPPED, errors
    assert shown == ""
    last = errors.splitlines()[-1]
    assert last.startswith("bertkit: stopped after step ")
    assert last.endswith(" of 1,000,000 with a checkpoint; the same command resumes from there")
    assert newest(run).name == f"step-{int(last.split()[4].replace(',', '')):08}"
