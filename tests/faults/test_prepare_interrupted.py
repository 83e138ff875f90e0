"""`prepare` is stopped at fifty places and run again, and with more workers: the same bytes.

`BERTKIT_NUM_STOPS` says how many.
"""

import multiprocessing
import os
import random
import signal
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.faults.children import SEED, run_child
from tests.faults.prepare_child import SHARD_TOKENS, UNIT_BYTES, Errand, Place, carry_out
from tests.letters import letters_tokenizer, write_letters

from bertkit.base import local_workers, storage
from bertkit.base.errors import MissingFileError, StoppedError
from bertkit.base.parts import WorkersSettings
from bertkit.cli.main import main
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.recipes.prepare import plan, work_unit
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings

NUM_STOPS = int(os.environ.get("BERTKIT_NUM_STOPS", "50"))
EXIT_STOPPED = 75
FILES = "abcdefgh"


class Stop(NamedTuple):
    """Where the work is stopped, with what, and how it goes on."""

    place: Place
    sent: signal.Signals


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files, two a unit, and a tokenizer of letters."""
    folder = tmp_path_factory.mktemp("prepare")
    write_letters(folder / "corpus", FILES, 20)
    letters_tokenizer().save(folder / "tokenizer")
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    """What an undisturbed call writes, and all places that it passes."""
    errand = make_errand(folder, folder / "whole")
    assert run_child(carry_out, errand) == 0
    return contents(errand.output), read_trace(errand.trace)


def make_errand(folder: Path, output: Path) -> Errand:
    words = f"prepare {folder}/corpus --tokenizer {folder}/tokenizer --output {output}"
    return Errand(
        words=f"{words} --held-out 0.2 --workers 1".split(),
        output=output,
        trace=output.with_suffix(".trace"),
    )


def read_trace(path: Path) -> list[Place]:
    fields = (line.split("\t") for line in path.read_text().splitlines())
    return [Place(int(number), operation, file) for number, operation, file in fields]


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def role(place: Place) -> tuple[str, str]:
    """What is done with which kind of file."""
    top, _, name = place.path.partition("/")
    return place.operation, top if top not in {"parts", "units"} else top + "/" * bool(name)


def choose_stops(places: list[Place], num_stops: int) -> list[Stop]:
    """Each kind of operation on each kind of file in turn; every third stop is SIGTERM."""
    choose = random.Random(SEED)
    by_role: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        by_role.setdefault(role(place), []).append(place)
    roles = choose.sample(sorted(by_role), len(by_role))
    return [
        Stop(
            choose.choice(by_role[roles[number % len(roles)]]),
            signal.SIGTERM if number % 3 == 2 else signal.SIGKILL,
        )
        for number in range(num_stops)
    ]


def find_problem(errand: Errand, stop: Stop, expected: dict[str, bytes]) -> str | None:
    """Stop a call, look at what it left, and call again; what is wrong, or None."""
    code = run_child(carry_out, replace(errand, number=stop.place.number, sent=stop.sent))
    if code != (EXIT_STOPPED if stop.sent == signal.SIGTERM else -stop.sent):
        return f"ended with {code}"
    try:
        ShardSet.open(errand.output, verify="all")
    except MissingFileError:
        if (errand.output / MANIFEST).exists():
            return "the manifest is there, and a file isn't"
    if code := call_again(errand):
        return f"the second call ended with {code}"
    found = contents(errand.output)
    differing = [name for name in expected if found.get(name) != expected[name]]
    litter = sorted(found.keys() - expected.keys())
    return f"differing: {differing}, litter: {litter}" if differing or litter else None


def call_again(errand: Errand) -> int:
    """The same call in this process, which is quicker; its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "UNIT_BYTES", UNIT_BYTES)
        patch.setattr(work_unit, "SHARD_TOKENS", SHARD_TOKENS)
        patch.setattr(storage, "sync", lambda descriptor: None)
        patch.setattr(storage, "sync_folder", lambda path: None)
        return main(errand.words)


def test_work_that_is_stopped_anywhere_goes_on_to_the_same_bytes(folder, whole, tmp_path):
    expected, places = whole
    assert sum(name.endswith(".tokens.npy") for name in expected) > len(FILES)  # several a unit
    problems = []
    for number, stop in enumerate(choose_stops(places, NUM_STOPS)):
        errand = make_errand(folder, tmp_path / str(number))
        if problem := find_problem(errand, stop, expected):
            problems.append(f"{stop}: {problem}")
    assert not problems, f"seed {SEED}, {len(problems)} of {NUM_STOPS}:\n" + "\n".join(problems)


def test_files_that_are_written_in_place_are_noticed(folder, whole, tmp_path):
    expected, places = whole
    half_plan = next(
        place
        for place in places
        if place.operation == "half-way in write" and place.path == "plan.json.partial"
    )
    errand = replace(make_errand(folder, tmp_path / "out"), is_written_in_place=True)
    assert find_problem(errand, Stop(half_plan, signal.SIGKILL), expected)


def test_any_number_of_workers_and_killed_ones_give_the_same_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "UNIT_BYTES", 1)  # a file each: some wait for a worker

    def call(name: str, workers: int) -> dict[str, bytes]:
        settings = PrepareSettings(held_out=0.2)
        output = tmp_path / name
        prepare(
            [f"{folder}/corpus"],
            folder / "tokenizer",
            output,
            settings,
            workers=WorkersSettings(workers=workers),
        )
        return contents(output)

    expected = call("alone", 1)
    assert call("two", 2) == expected
    assert call("four", 4) == expected
    with monkeypatch.context() as patch:
        patch.setattr(local_workers, "wait", kill_workers)
        with pytest.raises(StoppedError, match="a worker process was killed"):
            call("killed", 2)
    assert call("killed", 1) == expected


def kill_workers(*arguments: Any, **options: Any) -> Any:
    """Wait for the first unit, then kill the workers: none can finish the rest unnoticed."""
    done, pending = wait(*arguments, **options)
    if done:
        local_workers.wait = (
            wait  # killed once: a process that was waited for has no number any more
        )
        for worker in multiprocessing.active_children():
            os.kill(worker.pid, signal.SIGKILL)
    return done, pending
