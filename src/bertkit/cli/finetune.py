"""`bertkit finetune <task>`: a pre-trained encoder becomes a model for a task."""

import json as json_module
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS, TaskEntry
from bertkit.training.signals import stop_at_once


def build_finetune() -> App:
    """The command, with one of its own for each task."""
    app = App(name="finetune", help="Make a pre-trained encoder a model for a task.")
    for name, entry in TASKS.items():
        app.command(build_command(name, entry), name=name)
    return app


def build_command(name: str, entry: TaskEntry) -> Callable[..., None]:
    """`bertkit finetune <name>`: flags follow from the settings."""

    def finetune_task(
        *,
        model: str,
        train: str,
        dev: str | None = None,
        output: Path,
        task: TaskSettings,
        settings: Annotated[FineTuneSettings, Parameter(name="*")] = FineTuneSettings(),  # noqa: B008
        revision: str | None = None,
        json: bool = False,
    ) -> None:
        with stop_at_once(lambda: "stopped while it was loading; the same command begins again"):
            from bertkit.recipes.finetune.run import Sources, finetune

        sources = Sources(name, model, train, dev, revision)
        result = finetune(sources, output, task, settings)
        metrics = result.evaluation.metrics
        if json:
            print(json_module.dumps({"output": str(output), "metrics": metrics}))
            return
        shown = ", ".join(f"{key} {value:.4f}" for key, value in metrics.items())
        print(f"{output}: best after step {result.best_step:,} of {result.num_steps:,}: {shown}")
        for warning in result.evaluation.warnings:
            print(warning)

    annotations: dict[str, Any] = finetune_task.__annotations__
    annotations["task"] = Annotated[entry.settings, Parameter(name="*")]
    finetune_task.__defaults__ = None
    finetune_task.__kwdefaults__ = {
        **(finetune_task.__kwdefaults__ or {}),
        "task": entry.settings(),
    }
    finetune_task.__doc__ = f"""{entry.summary}

    Args:
        model: A model folder of any format, a run of `bertkit pretrain`, or the id of a model of
            the Hub.
        train: Labelled examples.
        dev: Held-out examples; without it, a share of the training examples is held out.
        output: Folder for the model.
        task: What can be chosen about the task.
        settings: What can be chosen about training.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    return finetune_task


finetune = build_finetune()
