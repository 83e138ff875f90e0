"""Child processes from one fork server that has torch loaded, and what their runs came to.

`BERTKIT_FAULT_SEED` chooses other places and bits, `BERTKIT_NUM_KILLS` at how many places a run is
killed.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.watch import Errand, Place, carry_out
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.files import read_json
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.training.log import CLOCK_FIELDS, read_log
from bertkit.training.run import LOG_FILE

SEED = int(os.environ.get("BERTKIT_FAULT_SEED", "0"))
NUM_KILLS = int(os.environ.get("BERTKIT_NUM_KILLS", "40"))
NUM_AT_ONCE = 2
PROCESSES = multiprocessing.get_context("forkserver")
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
        "tests.faults.command_child",
        "rouge_score.rouge_scorer",
        "sacrebleu.metrics",
        "bertkit.cli.vectors",
        "bertkit.cli.attention",
        "bertkit.interpret.attention_view",
        "bertkit.retrieval.embed",
        "bertkit.retrieval.features",
        "bertkit.recipes.finetune.search",
        "bertkit.recipes.report.run",
        "bertkit.recipes.seq2seq.run",
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
            f"pretrain --data {self.folder}/shards --model {self.folder}/nano.json --output {run}"
            f" {budget} --batch-size 8 --accumulate {ACCUMULATE} --max-length 32 --dropout 0.1"
            f" --learning-rate 5e-3 --eval-every {EVAL_EVERY} --eval-sequences 8 --device cpu"
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
    run: Path,
    signals: Mapping[Place, Sequence[signal.Signals]] | None = None,
    bugs: Sequence[str] = (),
) -> Ending:
    """Run a command in a child and wait for its end."""
    trace, messages = (run.with_name(run.name + suffix) for suffix in (".trace", ".messages"))
    code = run_child(carry_out, Errand(words, run, trace, messages, signals or {}, bugs))
    return Ending(code, read_trace(trace), messages.read_text(encoding="utf-8"))


def run_child(work: Callable[[Any], Any], errand: Any) -> int:
    """Do work in a child, and end it where it doesn't end; its exit code, as `Ending` has it."""
    child = PROCESSES.Process(target=work, args=(errand,))
    child.start()
    child.join(TIMEOUT_SECONDS)
    if child.exitcode is None:
        child.kill()
        child.join()
        pytest.fail(f"a child was still there after {TIMEOUT_SECONDS} s")
    code = child.exitcode
    child.close()
    return code


def read_trace(path: Path) -> list[Place]:
    """The places that a child noted."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [Place(int(step), point, int(visit)) for step, point, visit in rows]


def list_places(places: Sequence[Place], point: str) -> list[Place]:
    """Those of a point."""
    return [place for place in places if place.point == point]


def list_differences(expected: Path, found: Path) -> list[str]:
    """In what two finished runs differ that may not; clocks may."""
    pairs = {
        "names": (list_names(expected), list_names(found)),
        "record": tuple((run / "settings.json").read_bytes() for run in (expected, found)),
        "log": tuple(rows_without_clock(run / LOG_FILE) for run in (expected, found)),
        "state": (state_without_clock(expected), state_without_clock(found)),
    }
    for name in ("model.safetensors", "optimizer.safetensors"):
        pairs[name] = tuple((newest(run) / name).read_bytes() for run in (expected, found))
    return [name for name, (one, other) in pairs.items() if one != other]


def newest(run: Path) -> Path:
    """The last checkpoint."""
    return list_checkpoints(run)[-1]


def list_names(run: Path) -> set[Path]:
    """All that is in a run's folder, but for what TensorBoard writes."""
    names = {path.relative_to(run) for path in run.rglob("*")}
    return {name for name in names if name.parts[0] != "tensorboard"}


def rows_without_clock(log: Path) -> list[dict[str, Any]]:
    """A run's log, without what no two runs share."""
    return [
        {name: value for name, value in row.items() if name not in CLOCK_FIELDS}
        for row in read_log(log)
    ]


def state_without_clock(run: Path) -> dict[str, Any]:
    """The run's state in the last checkpoint, without what no two runs share."""
    state = read_json(newest(run) / "run_state.json")
    return {name: value for name, value in state.items() if name not in CLOCK_FIELDS}
