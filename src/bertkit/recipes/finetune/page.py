"""The report of a fine-tuned model: how it learnt, what it is worth, and where it is wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertkit.recipes.finetune.facts import Facts
from bertkit.reports.cells import Cell
from bertkit.reports.line_chart import LineChart, Series
from bertkit.reports.report import Charts, Report, Section, Table
from bertkit.tasks.sections import build_sections

Row = Mapping[str, Any]


def build_page(facts: Facts, log: Sequence[Row]) -> Report:
    """The page.

    Args:
        facts: what it tells.
        log: the run's rows.
    """
    judgement, comparison = facts.judgement, facts.comparison
    sections: list[Section] = [
        *([] if comparison is None else comparison.sections()),
        *build_sections(judgement.evaluation, judgement.before),
        draw_curves(facts, log),
        tabulate_counts(facts),
    ]
    if facts.counts["train"].labels:
        sections.append(tabulate_labels(facts))
    sections.append(
        Table(
            ["Setting", "Value"],
            [[name, value] for name, value in facts.settings.items()],
            title="Settings",
        )
    )
    return Report(title=facts.name, summary=summarise(facts), sections=sections)


def summarise(facts: Facts) -> str:
    """The run in two sentences."""
    task = facts.judgement.task
    value = facts.judgement.evaluation.metrics[task.metric]
    baseline = facts.judgement.baseline.get(task.metric)
    beside = "" if baseline is None else f" (always saying the most frequent label: {baseline:.4f})"
    ending = ", and ended early" if facts.has_ended_early else ""
    return (
        f"{facts.parent}, fine-tuned for the task {task.name}: {task.metric} {value:.4f}"
        f"{beside} on {facts.counts['dev'].num_examples:,} held-out examples. It trained for"
        f" {facts.num_steps:,} steps{ending}; the best epoch was {facts.best_epoch:.4g}."
    )


def draw_curves(facts: Facts, log: Sequence[Row]) -> Charts:
    """Loss and metric by epoch."""
    metric = facts.judgement.task.metric

    def series(name: str, event: str, key: str) -> Series:
        points = [
            (row["step"] / facts.steps_per_epoch, float(row[key]))
            for row in log
            if row["event"] == event and row.get(key) is not None
        ]
        return Series(name, points)

    return Charts(
        [
            LineChart(
                title="Loss",
                x_label="epoch",
                unit="loss",
                series=[series("training", "train", "loss"), series("held-out", "eval", "loss")],
                starts_at_zero=True,
            ),
            LineChart(
                title=metric,
                x_label="epoch",
                unit=metric,
                series=[series("held-out", "eval", metric)],
            ),
        ],
        title="How it learnt",
    )


def tabulate_counts(facts: Facts) -> Table:
    """What was read."""
    rows: list[list[Cell]] = [[words, *numbers] for words, *numbers in facts.count_rows()]
    columns = ["What", facts.counts["train"].name, facts.counts["dev"].name]
    return Table(columns, rows, title="What was read")


def tabulate_labels(facts: Facts) -> Table:
    """How often each label is there."""
    train, dev = facts.counts["train"].labels, facts.counts["dev"].labels
    rows: list[list[Cell]] = [
        [label, train.get(label, 0), dev.get(label, 0)] for label in {**train, **dev}
    ]
    return Table(["Label", "Training", "Held-out"], rows, title="Labels")
