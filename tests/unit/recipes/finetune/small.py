"""A small model, and tables whose label follows from a word."""

import random
from collections.abc import Sequence
from pathlib import Path

from tests.unit.inference.small import save_small

from bertkit.recipes.finetune.job import FineTuningJob
from bertkit.recipes.finetune.run import FineTuning, Sources
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.settings import TaskSettings
from bertkit.training.job import Machine

FILLERS = ("the", "a", "saw", "lost", "hat")
TASK = ClassifySettings(max_length=12)
# Four epochs of five steps, after the second of which all of `dev` is right.
QUICK = FineTuneSettings(epochs=4, batch_size=8, learning_rate=1e-2, dropout=0.0, device="cpu")


def save_model(folder: Path, **changes: object) -> None:
    """A model that learns a word's meaning in a few steps."""
    sizes = {"hidden_size": 32, "intermediate_size": 32, "initializer_range": 0.1}
    save_small(folder, **{**sizes, **changes})


def write_rows(path: Path, rows: Sequence[str]) -> Path:
    """A table of texts and labels."""
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return path


def make_rows(number: int, seed: int) -> list[str]:
    """Texts in which a cat is good and a dog is bad, half of each."""
    choose = random.Random(seed)
    rows = []
    for index in range(number):
        words = choose.choices(FILLERS, k=choose.randint(1, 6))
        is_good = index % 2 == 0
        words.insert(choose.randint(0, len(words)), "cat" if is_good else "dog")
        rows.append(f"{' '.join(words)},{'good' if is_good else 'bad'}")
    return rows


def write_tables(folder: Path) -> tuple[Path, Path]:
    """Forty examples to learn from and sixteen that are held out."""
    train = write_rows(folder / "train.csv", make_rows(40, 1))
    return train, write_rows(folder / "dev.csv", make_rows(16, 2))


def open_job(
    sources: Sources, task_settings: TaskSettings, settings: FineTuneSettings
) -> FineTuningJob:
    """The job of a run that begins."""
    return FineTuning(sources, task_settings, settings).open(None, Machine.choose(settings))
