"""Runs that nobody trained: a record and a log, as the loop would write them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertkit.base.checksummed_json import add_row_checksum, write_checksummed_json
from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.recipes.finetune.data import SetCounts
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.training.record import LOG_FILE, RunRecord
from bertkit.training.run import Run

NUM_STEPS = 40


def train_row(step: int, **values: Any) -> dict[str, Any]:
    """A step of pre-training."""
    return {
        "event": "train",
        "step": step,
        "loss": 9.0 - step / 10,
        "mlm_loss": 8.0 - step / 10,
        "mlm_accuracy": step / 100,
        "nsp_accuracy": 0.5,
        "gradient_norm": 1.5,
        "learning_rate": 1e-4,
        "tokens": 1000 * step,
        "tokens_per_second": 2000.0 + step,
        "share_of_peak": 0.25,
        "elapsed_seconds": step / 2,
        **values,
    }


def eval_row(step: int, **values: Any) -> dict[str, Any]:
    """An evaluation of pre-training."""
    metrics = {"loss": 9.1 - step / 10, "mlm_loss": 8.1 - step / 10, "mlm_accuracy": step / 110}
    return {"event": "eval", "step": step, "tokens": 0, **metrics, "nsp_accuracy": 0.6, **values}


def write_log(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The rows, each with its checksum."""
    (folder / LOG_FILE).write_text("".join(f"{add_row_checksum(row)}\n" for row in rows))


def choose(**settings: Any) -> dict[str, Any]:
    """The settings of a run, as its record has them."""
    chosen = PretrainSettings(
        **{"size": "tiny", "steps": NUM_STEPS, "objective": "bert", **settings}
    )
    return chosen.model_dump(mode="json")


def write_run(folder: Path, rows: Sequence[dict[str, Any]] | None = None, **record: Any) -> Path:
    """A pre-training run without checkpoints.

    Args:
        folder: its folder.
        rows: of its log; by default those of a finished run.
        record: what its record has besides.
    """
    facts: dict[str, Any] = {
        "settings": choose(),
        "data_fingerprint": "a",
        "model": {"hidden_size": 128, "id2label": {"0": "bad"}},
        "num_steps": NUM_STEPS,
        "versions": {"torch": "2.13.0", "threads": "2"},
    }
    Run(folder).write_record(RunRecord(**{**facts, **record}))
    if rows is None:
        steps = [train_row(step) for step in range(1, NUM_STEPS + 1)]
        rows = [eval_row(0), *steps, eval_row(NUM_STEPS)]
    write_log(folder, rows)
    return folder


def write_finetuned(output: Path, *, is_finished: bool = True) -> Path:
    """The folder of a fine-tuned classifier, but for its model."""
    settings = {
        "task": "classify",
        "model": "models/MiniLM/",
        "revision": None,
        **ClassifySettings().model_dump(mode="json"),
        **FineTuneSettings(epochs=2).model_dump(mode="json"),
    }
    steps = [train_row(step) for step in range(1, NUM_STEPS + 1)]
    first, second, third = (
        {"event": "eval", "step": step, "tokens": 0, "loss": 0.5, "accuracy": 0.5 + step / 100}
        for step in (0, 20, 40)
    )
    rows = [first, *steps[:20], second, *steps[20:], third]
    write_run(output / "run", rows if is_finished else rows[:30], settings=settings)
    if is_finished:
        write_checksummed_json(output / METRICS_FILE, make_result().model_dump(mode="json"))
    return output


def make_result() -> SavedFineTuning:
    """What the classifier came to: two epochs of twenty steps."""
    counts = SetCounts(
        name="train.csv",
        sha256="0" * 64,
        num_examples=640,
        num_broken=3,
        num_undecodable=0,
        num_empty=0,
        num_cut=0,
        num_in_windows=0,
        num_unseen=0,
        labels={"bad": 320, "good": 320},
    )
    return SavedFineTuning(
        task="classify",
        metric="accuracy",
        metrics={"accuracy": 0.9, "f1": None},
        intervals={"accuracy": (0.85, 0.95)},
        baseline={"accuracy": 0.5},
        warnings=("every prediction is 'good'",),
        num_steps=NUM_STEPS,
        best_step=40,
        best_epoch=2.0,
        steps_per_epoch=20,
        has_ended_early=False,
        train=counts,
        dev=counts,
    )
