"""The report of a fine-tuned model: evaluation, errors, training curves, data and settings."""

from collections.abc import Mapping
from dataclasses import replace

from bertkit.base.wording import pluralize
from bertkit.recipes.finetune.examples import SetCounts
from bertkit.recipes.finetune.facts import COUNT_NAMES, FineTuningFacts
from bertkit.recipes.model_card import list_counts
from bertkit.reports.cells import Cell
from bertkit.reports.report import Charts, Report, Section, Table
from bertkit.tasks.sections import build_sections
from bertkit.training.records.history import TrainingHistory
from bertkit.training.records.sections import LOSS, Across, Curve, draw_curves, tabulate_settings

MAX_LABELS = 200  # in a table


def build_page(facts: FineTuningFacts, history: TrainingHistory) -> Report:
    """Build the report.

    Args:
        facts: the data to show.
        history: the run's training history.
    """
    final, comparison = facts.final, facts.comparison
    sections: list[Section] = [
        *([] if comparison is None else comparison.sections()),
        *build_sections(final.evaluation, final.before),
        *([] if facts.num_steps == 0 else [draw_training(facts, history)]),
        *tabulate_data(facts.counts),
        tabulate_settings(facts.settings),
    ]
    return Report(title=facts.name, summary=summarize(facts), sections=sections)


def draw_training(facts: FineTuningFacts, history: TrainingHistory) -> Charts:
    """Draw the training curves."""
    curves = choose_curves(facts.final.task.metric)
    charts = draw_curves(history, curves, epochs(facts.steps_per_epoch))
    return Charts(charts, title="Training curves")


def summarize(facts: FineTuningFacts) -> str:
    """Summarize the run in two sentences."""
    task = facts.final.task
    value = facts.final.evaluation.metrics[task.metric]
    baseline = facts.final.baseline.get(task.metric)
    beside = (
        "" if baseline is None else f" (always predicting the most frequent label: {baseline:.4f})"
    )
    ending = ", and ended early" if facts.has_ended_early else ""
    how = "The last layer was solved on the frozen encoder."
    if facts.num_steps:
        steps = pluralize(facts.num_steps, "step")
        how = f"It trained for {steps}{ending}; the best epoch was {facts.best_epoch:.4g}."
    return (
        f"{facts.initial_model}, fine-tuned for the task {task.name}: {task.metric} {value:.4f}"
        f"{beside} on {facts.counts['dev'].num_examples:,} held-out examples. {how}"
    )


def choose_curves(*metrics: str) -> tuple[Curve, ...]:
    """Return the curves of the loss and of metrics."""
    return replace(LOSS, starts_at_zero=True), *(Curve(name, name, name) for name in metrics)


def epochs(num_steps: int) -> Across:
    """Return an x axis in epochs.

    Args:
        num_steps: number of steps in an epoch.
    """
    return Across("step", "epoch", num_steps)


def tabulate_data(counts: Mapping[str, SetCounts]) -> list[Table]:
    """Tabulate the counts of the data and of each label.

    Args:
        counts: counts of the sets `train` and `dev`.
    """
    train, dev = counts["train"], counts["dev"]
    met: list[list[Cell]] = [
        [words, *numbers] for words, *numbers in list_counts(COUNT_NAMES, train, dev)
    ]
    tables = [Table(["", train.name, dev.name], met, title="Data")]
    if train.labels:
        labels = list({**train.labels, **dev.labels})  # the most frequent first
        rows: list[list[Cell]] = [
            [label, train.labels.get(label, 0), dev.labels.get(label, 0)]
            for label in labels[:MAX_LABELS]
        ]
        num_more = len(labels) - MAX_LABELS
        note = f"There are {num_more:,} rarer ones, all of them in config.json."
        columns = ["Label", "Training", "Held-out"]
        tables.append(Table(columns, rows, title="Labels", note=note if num_more > 0 else ""))
    return tables
