"""An index whose processes are killed, or write and read at once, or whose bytes are flipped.

`BERTKIT_FAULT_SEED` chooses other moments and bits.
"""

import random
import shutil
from multiprocessing.connection import wait

import pytest
from tests.faults.children import PROCESSES, SEED, one_at_a_time
from tests.faults.index_work import (
    INDEX,
    describe,
    list_steps,
    make_text,
    name_text,
    noting_states,
    open_index,
    read_pairs,
    work,
    write_pairs,
)
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.errors import BertkitError

PAGE_BYTES = 4096
MAX_DELAY_SECONDS = 0.05  # between the end of a step and a kill; any is good


def start(target, *arguments):
    process = PROCESSES.Process(target=target, args=arguments)
    with one_at_a_time:
        process.start()
    return process


def end(process):
    """The exit code of a process, which has ended or is about to."""
    wait([process.sentinel], TIMEOUT_SECONDS)
    with one_at_a_time:
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
    return code


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """For each number of steps that were done, the states that may be found."""
    folder = tmp_path_factory.mktemp("undisturbed")
    allowed, last = [], ""
    with open_index(folder / INDEX) as index:
        for step in list_steps(folder):
            with noting_states(folder / INDEX) as states:
                step(index)
            allowed.append([last, *states])
            last = states[-1]
    return [*allowed, [last]]


def kill(folder, chance, num_steps):
    """Let a child work, and kill it somewhere; return how many steps it had done."""
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = start(work, folder, sender)
    sender.close()
    num_done = 0
    for _ in range(chance.randrange(num_steps)):
        assert receiver.poll(TIMEOUT_SECONDS)
        num_done = receiver.recv() + 1
    wait([process.sentinel], chance.random() * MAX_DELAY_SECONDS)
    with one_at_a_time:
        process.kill()
    end(process)
    while True:
        try:
            num_done = receiver.recv() + 1
        except EOFError:
            return num_done


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(10), id="10"),
        pytest.param(range(10, 200), marks=pytest.mark.exhaustive, id="190"),
    ],
)
def test_a_killed_process_leaves_the_state_before_or_after(tmp_path, undisturbed, numbers):
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        num_done = kill(folder, random.Random(SEED + number), len(undisturbed) - 1)
        assert describe(folder / INDEX) in undisturbed[num_done], f"seed {SEED}, {number}"
        with open_index(folder / INDEX) as index:
            for step in list_steps(folder)[num_done:]:
                step(index)
        assert describe(folder / INDEX) == undisturbed[-1][0], f"seed {SEED}, {number}"
        assert {path.name for path in folder.iterdir()} == {INDEX, "notes"}
        shutil.rmtree(folder)


@pytest.mark.parametrize("num_rounds", [10, pytest.param(600, marks=pytest.mark.exhaustive)])
def test_two_write_and_four_read(tmp_path, num_rounds):
    path, writing = tmp_path / INDEX, tmp_path / "writing"
    writing.touch()
    write_pairs(path, "none", 1)  # makes the file
    writers = [start(write_pairs, path, name, num_rounds) for name in ("one", "two")]
    readers = [start(read_pairs, path, writing) for _ in range(4)]
    codes = [end(process) for process in writers]
    writing.unlink()
    codes += [end(process) for process in readers]
    assert codes == [0] * 6
    expected = {
        f"{writer}-{number}-{side}"
        for writer in ("one", "two")
        for number in range(num_rounds)
        for side in "ab"
        if number % 3
    }
    with open_index(path) as index:
        assert {document.id for document in index.documents()} == expected
    describe(path)
    assert [one.name for one in tmp_path.iterdir()] == [INDEX]


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(60), id="60"),
        pytest.param(range(60, 3000), marks=pytest.mark.exhaustive, id="2940"),
    ],
)
def test_flipped_bytes_are_named_or_change_nothing(tmp_path, numbers):
    path = tmp_path / INDEX
    names = [str(number) for number in range(300)]
    with open_index(path) as index:
        rows = [{"id": name, "text": name_text(name), "kind": "a"} for name in names]
        index.add(rows, id="id", text="text")
    content, num_named = path.read_bytes(), 0
    for number in numbers:
        chance = random.Random(SEED + number)
        page = chance.randrange(len(content) // PAGE_BYTES) * PAGE_BYTES
        places = [page + chance.randrange((16, PAGE_BYTES)[number % 2]) for _ in range(8)]
        if number % 10 == 0:
            places = [chance.randrange(100)]  # the file's header
        flipped = bytearray(content)
        for place in places:
            flipped[place] ^= 1 << chance.randrange(8)
        damaged = tmp_path / f"{number}.bertkit"
        damaged.write_bytes(flipped)
        try:
            use_index(damaged)
        except BertkitError:
            num_named += 1
        except Exception as error:
            error.add_note(f"seed {SEED}, {number}: {places}")
            raise
        damaged.unlink()
    assert num_named > len(numbers) / 4


def use_index(path):
    """What people do with an index; texts that are found are those that were added."""
    with open_index(path) as index:
        for by in ("words", "vectors", "both"):
            for hit in index.search("bread and coffee", by=by, where={"kind": "a"}, top_k=20):
                assert hit.text in name_text(hit.id)
        index.add([{"id": "new", "text": make_text(1), "kind": "b"}], id="id", text="text")
        index.delete(["7", "new"])
        index.info()
        list(index.documents())
