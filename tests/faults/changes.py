"""What a child process has otherwise than its users: small sizes, or a planted bug."""

from collections.abc import Callable
from pathlib import Path

from bertkit.base import files
from bertkit.inference import stream
from bertkit.recipes.prepare import plan, work_unit
from bertkit.retrieval import unfinished_vectors
from bertkit.training import step as step_module
from bertkit.training.run import Run
from bertkit_studies.experiments.steps import Steps
from bertkit_studies.probes import pretrained_arms
from bertkit_studies.probes.downstream import TaskTuning
from bertkit_studies.probes.pretrained_arms import PretrainingScale

UNIT_BYTES = 3000  # two files of the tests' corpus
WINDOW_TEXTS = 8
SMALLEST = PretrainingScale(
    {"model": "tiny", "max_length": 32, "batch_size": 4, "eval_sequences": 8},
    tokens=1_000,
    fine_tuning=TaskTuning(num_train=24, num_dev=24, learning_rate=1e-3, epochs=1.0, batch_size=8),
)


def make_small() -> None:
    """Many parts of few tokens, vectors made safe after a few texts, and studies of a moment."""
    plan.UNIT_BYTES, work_unit.SHARD_TOKENS = UNIT_BYTES, 600
    stream.WINDOW_TEXTS, unfinished_vectors.SAVE_SECONDS = WINDOW_TEXTS, 0.0
    pretrained_arms.SCALES["small"] = SMALLEST
    Steps.scales = pretrained_arms.SCALES


def forget_optimizer_state() -> None:
    """A resumed run begins with a new optimizer."""
    Run.load = lambda *_: None  # type: ignore[method-assign]


def reuse_seeds() -> None:
    """A process counts its own steps, and a resumed one has the first one's dropout."""
    derive_seed, first_steps = step_module.derive_seed, list[int]()

    def derive_from_start(seed: int, step: int, micro_batch: int) -> int:
        first_steps.append(step)
        return derive_seed(seed, step - first_steps[0], micro_batch)

    step_module.derive_seed = derive_from_start


def write_in_place() -> None:
    """A file has its final name before it is whole."""
    begin = files.DurableFile.__init__

    def begin_in_place(self: files.DurableFile, path: Path) -> None:
        begin(self, path)
        self._temporary = path

    files.DurableFile.__init__ = begin_in_place  # type: ignore[method-assign]


CHANGES: dict[str, Callable[[], None]] = {
    "small": make_small,
    "optimizer state dropped": forget_optimizer_state,
    "seeds reused": reuse_seeds,
    "written in place": write_in_place,
}
