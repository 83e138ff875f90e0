"""Child processes from one fork server that has torch loaded, and what their runs came to.

`BERTKIT_FAULT_SEED` chooses other places and bits, `BERTKIT_NUM_KILLS` at how many places a run is
killed.
"""

import multiprocessing
import multiprocessing.connection
import os
import shutil
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.watch import Errand, Fault, Place, carry_out
from tests.logs import rows_without_clock
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.json_files import read_json
from bertkit.checkpoints.run_folder import MANIFEST, list_checkpoints
from bertkit.recipes.train_tokenizer import FACTS_FILE
from bertkit.training.log import CLOCK_FIELDS
from bertkit.training.record import LOG_FILE

SEED = int(os.environ.get("BERTKIT_FAULT_SEED", "0"))
NUM_KILLS = int(os.environ.get("BERTKIT_NUM_KILLS", "40"))
NUM_AT_ONCE = 2
PROCESSES = multiprocessing.get_context("forkserver")
# A start reads the exit codes of all children that have ended. Where another thread reads the same
# one at that moment, it gets 255.
one_at_a_time = threading.Lock()
# torch._dynamo: the first optimizer that is built imports it, and that takes seconds; pandas, which
# needn't be there: pyarrow's first array does.
PROCESSES.set_forkserver_preload(
    [
        "pytest",
        "torch._dynamo",
        "torch.utils.tensorboard",
        "bertkit.recipes.pretrain.run",
        "bertkit.cli.pretrain",
        "bertkit.cli.main",
        "bertkit.cli.pretrain",
        "bertkit.recipes.prepare.run",
        "tests.faults.watch",
        "rouge_score.rouge_scorer",
        "sacrebleu.metrics",
        "bertkit.cli.search",
        "bertkit.cli.vectors",
        "bertkit.interpret.commands",
        "bertkit.interpret.attention_view",
        "bertkit.retrieval.embed",
        "bertkit.retrieval.features",
        "bertkit.retrieval.index",
        "bertkit.recipes.finetune.seeds",
        "bertkit.recipes.report.run",
        "bertkit.decoders.seq2seq.run",
        "pyarrow.parquet",
        "pandas",
    ]
)

NUM_STEPS, CHECKPOINT_EVERY, EVAL_EVERY, ACCUMULATE = 30, 4, 3, 2


@dataclass(frozen=True)
class Workshop:
    """A folder with shards and a model's sizes."""

    folder: Path

    def words(self, run: Path, budget: str = f"--steps {NUM_STEPS}") -> list[str]:
        """The command line of a small run with all that can go wrong in it."""
        return (
            f"pretrain --data {self.folder}/shards --size {self.folder}/nano.json --output {run}"
            f" {budget} --batch-size 8 --accumulate {ACCUMULATE} --max-length 32 --dropout 0.1"
            f" --learning-rate 5e-3 --eval-every {EVAL_EVERY} --eval-examples 8 --device cpu"
            f" --checkpoint-every {CHECKPOINT_EVERY} --keep 2"
        ).split()


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes:
        code: its exit code; minus the number of the signal that killed it.
        places: all that it reached, in order.
        messages: what it wrote to standard output and standard error.
    """

    code: int
    places: list[Place]
    messages: str


def send(
    words: Sequence[str],
    output: Path,
    signals: Mapping[Place, Sequence[Fault]] | None = None,
    *,
    is_small: bool = False,
) -> Ending:
    """Run a command in a child and wait for its end."""
    errand = Errand(words, output, signals or {}, is_small)
    code = run_child(carry_out, errand)
    messages = errand.messages.read_text(encoding="utf-8")
    return Ending(code, read_trace(errand.trace), messages)


def try_each(
    cases: Sequence[Any], find_problems: Callable[[Any, Path], list[str]], folder: Path
) -> None:
    """Try each case by itself, some at once, with an output of its own; none may have problems."""

    def try_out(number: int) -> str:
        place = folder / str(number)
        place.mkdir()
        problems = find_problems(cases[number], place / "run")
        shutil.rmtree(place)
        return f"{cases[number]}: {'; '.join(problems)}" if problems else ""

    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        found = list(filter(None, pool.map(try_out, range(len(cases)))))
    assert not found, f"seed {SEED}, {len(found)} of {len(cases)}:\n" + "\n".join(found)


def run_child(work: Callable[[Any], Any], errand: Any) -> int:
    """Do work in a child, and end it where it doesn't end; its exit code, as `Ending` has it."""
    child = PROCESSES.Process(target=work, args=(errand,))
    with one_at_a_time:
        child.start()
    has_ended = multiprocessing.connection.wait([child.sentinel], TIMEOUT_SECONDS)
    with one_at_a_time:
        if not has_ended:
            child.kill()
        child.join()
        code = child.exitcode
        child.close()
    if not has_ended:
        pytest.fail(f"a child was still there after {TIMEOUT_SECONDS} s")
    return code


def read_trace(path: Path) -> list[Place]:
    """The places that a child noted."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [Place(int(step), point, int(visit)) for step, point, visit in rows]


def list_places(places: Sequence[Place], point: str) -> list[Place]:
    """Those of a point."""
    return [place for place in places if place.point == point]


def list_differences(expected: Path, found: Path, free: Collection[str] = ()) -> list[str]:
    """The files of two outputs that are missing, too many, or not as they must be.

    Names in `free` are those of files of which only that they are there counts.
    """
    one, other = read_output(expected), read_output(found)
    return sorted(one.keys() ^ other.keys()) + sorted(
        name
        for name in one.keys() & other.keys()
        if one[name] != other[name] and Path(name).name not in free
    )


def read_output(folder: Path) -> dict[str, Any]:
    """All that a command wrote, but for clocks and what TensorBoard writes."""
    return {
        str(path.relative_to(folder)): read_without_clock(path)
        for path in folder.rglob("*")
        if "tensorboard" not in path.parts
    }


def read_without_clock(path: Path) -> Any:
    """What two runs that do the same share of a file; None for what need only be there."""
    is_seal = path.name == MANIFEST and (path.parent / "run_state.json").exists()
    if path.is_dir() or is_seal or path.name == FACTS_FILE:
        return None
    if path.name == LOG_FILE:
        return rows_without_clock(path)
    if path.name == "run_state.json":
        state = read_json(path)
        return {name: value for name, value in state.items() if name not in CLOCK_FIELDS}
    return path.read_bytes()


def newest(run: Path) -> Path:
    """The last checkpoint."""
    return list_checkpoints(run)[-1]
