"""The demo's report: how well the model fills blanks, how it came to that, and how to go on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from bertkit.reports.line_chart import LineChart, Series
from bertkit.reports.report import Bar, Bars, Charts, Command, Report, Section, Table

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Accuracies:
    """Shares of the same held-out blanks that are filled right.

    Attributes:
        num_masked: how many blanks there are.
        model: by the likeliest word of the trained model.
        neighbours: by the best guess from the two neighbouring words.
        most_frequent: by always saying the training text's most frequent token.
        most_frequent_token: which one that is.
    """

    num_masked: int
    model: float
    neighbours: float
    most_frequent: float
    most_frequent_token: str


@dataclass(frozen=True)
class Example:
    """A text with a blank, and the likeliest words before and after pre-training."""

    text: str
    before: str
    after: str


@dataclass(frozen=True)
class Facts:
    """What the report tells.

    Attributes:
        accuracies: the result.
        examples: blanks, before and after.
        log: the run's rows.
        settings: tables of settings by title.
        corpus: names and numbers of what was read.
        run: the run's folder.
    """

    accuracies: Accuracies
    examples: Sequence[Example]
    log: Sequence[Row]
    settings: Mapping[str, Mapping[str, Any]]
    corpus: Mapping[str, str | int]
    run: Path


def build_report(facts: Facts) -> Report:
    """The page."""
    run = quote(str(facts.run))
    sections: list[Section] = [
        _accuracy_bars(facts.accuracies),
        Table(
            ["Text", "Before", "After"],
            [[example.text, example.before, example.after] for example in facts.examples],
            title="Five blanks, before and after",
            note="The three likeliest words of the untrained and of the trained model.",
        ),
        _curves(facts.log),
        Table(["What", "Number"], list(facts.corpus.items()), title="What was read"),
        Command(
            f"bertkit fill-mask {run} {quote('The function returns a [MASK].')}\n"
            f"bertkit inspect {run}\n"
            "bertkit demo --help",
            title="How to go on",
        ),
    ]
    sections += [
        Table(
            ["Setting", "Value"],
            [[name, "none" if value is None else str(value)] for name, value in values.items()],
            title=title,
        )
        for title, values in facts.settings.items()
    ]
    return Report(
        title="A BERT from nothing",
        summary=f"It read the documentation that comes with Python for {_minutes(facts.log):.1f}"
        " minutes and learned to fill blanks. " + describe_result(facts.accuracies),
        sections=sections,
    )


def describe_result(accuracies: Accuracies) -> str:
    """The result in two sentences, whoever wins."""
    ratio = accuracies.model / accuracies.most_frequent if accuracies.most_frequent else 0.0
    winner = (
        "The model is better than"
        if accuracies.model > accuracies.neighbours
        else "Still better is"
    )
    return (
        f"In packages that it has never read it fills {accuracies.model:.1%} of the blanks right,"
        f" {ratio:.1f} times as many as always saying “{accuracies.most_frequent_token}”"
        f" ({accuracies.most_frequent:.1%}). {winner} the best guess from the two neighbouring"
        f" words ({accuracies.neighbours:.1%})."
    )


def _accuracy_bars(accuracies: Accuracies) -> Bars:
    token = accuracies.most_frequent_token
    guessers = {
        "This model": accuracies.model,
        "Best guess from the two neighbouring words": accuracies.neighbours,
        f"Always the most frequent token, “{token}”": accuracies.most_frequent,
    }
    return Bars(
        [
            Bar(name, share, f"{share:.1%}", is_highlighted=number == 0)
            for number, (name, share) in enumerate(guessers.items())
        ],
        title="How many blanks are filled right",
        note=f"The same {accuracies.num_masked:,} masked tokens for all three, with the same"
        " corrupted text around them, in packages that were held out as a whole.",
    )


def _curves(log: Sequence[Row]) -> Charts:
    train = [row for row in log if row["event"] == "train"]
    held_out = [row for row in log if row["event"] == "eval"]

    def chart(title: str, unit: str, name: str, *, is_percent: bool) -> LineChart:
        series = [
            Series("training", _means(train, name)),
            Series("held out", [(row["step"], row[name]) for row in held_out]),
        ]
        return LineChart(title, "step", unit, series, is_percent=is_percent)

    speed = Series("training", _means(train, "tokens_per_second"))
    return Charts(
        [
            chart("Masked words, loss", "nats", "mlm_loss", is_percent=False),
            chart("Masked words, accuracy", "of blanks", "mlm_accuracy", is_percent=True),
            chart("Next sentence, accuracy", "of pairs", "nsp_accuracy", is_percent=True),
            LineChart("Speed", "step", "real tokens a second", [speed], starts_at_zero=True),
        ],
        title="How it learned",
        note="Training values are means over neighbouring steps.",
    )


def _minutes(log: Sequence[Row]) -> float:
    seconds: float = max((row.get("elapsed_seconds", 0.0) for row in log), default=0.0)
    return seconds / 60


def _means(rows: Sequence[Row], name: str, num_points: int = 100) -> list[tuple[float, float]]:
    """Means over equally many neighbouring steps, at the last step of each group."""
    size = max(1, -(-len(rows) // num_points))
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [(group[-1]["step"], sum(row[name] for row in group) / len(group)) for group in groups]
