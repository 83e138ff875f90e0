"""Runs that are killed at places drawn at random, taken up, and held against one that was not."""

import random
import shutil
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.faults.children import (
    ACCUMULATE,
    CHECKPOINT_EVERY,
    NUM_AT_ONCE,
    NUM_KILLS,
    NUM_STEPS,
    SEED,
    Ending,
    Workshop,
    list_differences,
    list_places,
    send,
)
from tests.faults.watch import Place

SAVED = "rename run/checkpoints/step.partial"
MIDDLE_OF_A_SAVE = Place(
    4 * CHECKPOINT_EVERY, "half-way in write run/checkpoints/step.partial/file.partial", 3
)

Kill = tuple[Place, ...]  # where the first process is killed, where the one after it, …


def kill(workshop: Workshop, run: Path, place: Place) -> Ending:
    """Begin or take up a run, and kill it."""
    ending = send(workshop.words(run), run, {place: [signal.SIGKILL]})
    assert ending.code == -signal.SIGKILL, f"{place}: {ending.code}: {ending.messages}"
    assert ending.places[-1] == place
    return ending


def saved_step(ending: Ending) -> int:
    """The step of the last checkpoint that a process was done with; 0 where there is none."""
    return max((place.step for place in ending.places[:-1] if place.point == SAVED), default=0)


def find_problems(workshop: Workshop, reference: Path, run: Path, places: Kill) -> list[str]:
    """Kill at each place, let the run end, and say what is not as it must be."""
    saved, problems = 0, []
    for place in places:
        ending = kill(workshop, run, place)
        problems += find_late_start(ending, saved)
        saved = max(saved, saved_step(ending))
    ending = send(workshop.words(run), run)
    problems += find_late_start(ending, saved)
    lost = places[-1].step - saved
    if lost > CHECKPOINT_EVERY:
        problems.append(f"{lost} steps lost")
    if ending.code:
        return [*problems, ending.messages]
    return problems + list_differences(reference, run)


def find_late_start(ending: Ending, saved: int) -> list[str]:
    """Whether a process began with another step than the one after the last checkpoint."""
    steps = [place.step for place in ending.places if place.point == "before a step"]
    if steps and steps[0] != saved + 1:
        return [f"step {saved} was saved, and the next process began with {steps[0]}"]
    return []


def draw_kills(whole: Sequence[Place], taken_up: Sequence[Place], count: int) -> list[Kill]:
    """Every point of training, saving and rotating once, then most after the first checkpoint.

    A place of a point is chosen among those after the first checkpoint, where it has one there.

    Args:
        whole: what an undisturbed run passes.
        taken_up: what one passes that was killed at `MIDDLE_OF_A_SAVE`.
        count: how many.
    """
    choose = random.Random(SEED)
    first = next(index for index, place in enumerate(whole) if place.point == SAVED)
    early, late = whole[: first + 1], whole[first + 1 :]
    kills: list[Kill] = [
        (choose.choice(list_places(late, point) or list_places(early, point)),)
        for point in dict.fromkeys(place.point for place in whole if place.step)
    ]
    setting_up = [place for place in taken_up if place.step == 0]
    while len(kills) < count:
        one, other = choose.choice(late), choose.choice(late)
        rare: list[Kill] = [(choose.choice(early),), (MIDDLE_OF_A_SAVE, choose.choice(setting_up))]
        often: list[Kill] = [(one,), (one, other) if one.step < other.step else (one,)]
        kinds = rare + 3 * often
        kills.append(kinds[len(kills) % len(kinds)])
    return kills


def test_the_run_has_all_that_could_go_wrong(undisturbed):
    places = undisturbed[1].places
    steps = {place.step for place in places if place.point == "first examples of another epoch"}
    assert steps
    assert CHECKPOINT_EVERY < min(steps) < NUM_STEPS
    parts = {place.visit for place in places if place.point == "before a micro-batch"}
    assert parts == set(range(ACCUMULATE))
    assert len({place.step for place in places if place.point == "before an evaluation"}) > 5
    assert {place.step for place in places if place.point.startswith("remove run/checkpoints")}


@pytest.mark.parametrize("count", [40, 200])
def test_every_point_is_drawn_and_most_places_are_after_the_first_checkpoint(undisturbed, count):
    places = undisturbed[1].places
    last = [kill[-1] for kill in draw_kills(places, places, count)]
    assert len(last) == count
    assert {place.point for place in places if place.step} <= {place.point for place in last}
    assert sum(place.step > CHECKPOINT_EVERY for place in last) >= 0.75 * count


def test_killed_anywhere_nothing_changes(workshop, undisturbed, tmp_path):
    reference, ending = undisturbed
    kill(workshop, tmp_path / "run", MIDDLE_OF_A_SAVE)
    kills = draw_kills(
        ending.places, send(workshop.words(tmp_path / "run"), tmp_path / "run").places, NUM_KILLS
    )

    def try_out(number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        problems = find_problems(workshop, reference, folder / "run", kills[number])
        shutil.rmtree(folder)
        return f"{kills[number]}: {'; '.join(problems)}" if problems else ""

    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        problems = list(filter(None, pool.map(try_out, range(len(kills)))))
    assert not problems, f"seed {SEED}, {len(problems)} of {len(kills)}:\n" + "\n".join(problems)


def test_killed_before_the_last_rotation_it_is_made_up_for(workshop, undisturbed, tmp_path):
    """The run is done then, and nothing else would remove the oldest checkpoint."""
    place = Place(NUM_STEPS, "sync_folder run/checkpoints", 0)
    assert find_problems(workshop, undisturbed[0], tmp_path / "run", (place,)) == []


@pytest.mark.parametrize("bug", ["optimizer state dropped", "seeds reused"])
def test_a_planted_bug_is_found(workshop, undisturbed, tmp_path, bug):
    kill(workshop, tmp_path / "run", MIDDLE_OF_A_SAVE)
    ending = send(workshop.words(tmp_path / "run"), tmp_path / "run", bugs=[bug])
    assert ending.code == 0, ending.messages
    found = set(list_differences(undisturbed[0], tmp_path / "run"))
    assert found == {"log", "state", "model.safetensors", "optimizer.safetensors"}
