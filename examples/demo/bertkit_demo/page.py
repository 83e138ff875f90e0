"""The demo's report: masked-token accuracy, training curves, and commands to try next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from bertkit.recipes.pretrain.objective_report import MASKED_WORDS, NEXT_SENTENCE
from bertkit.reports.report import Bar, Bars, Charts, Command, Report, Section, Table
from bertkit.reports.text import format_percent
from bertkit.training.history import TrainingHistory
from bertkit.training.sections import SPEED, draw_curves, tabulate_settings


@dataclass(frozen=True)
class Accuracies:
    """Masked-token accuracies of the model and the baselines on the same held-out positions.

    Attributes:
        num_masked: number of masked tokens.
        model: accuracy of the trained model's most likely token.
        neighbors: accuracy of the best guess from the two neighboring tokens.
        most_frequent: accuracy of always predicting the training text's most frequent token.
        most_frequent_token: that token.
    """

    num_masked: int
    model: float
    neighbors: float
    most_frequent: float
    most_frequent_token: str


@dataclass(frozen=True)
class Example:
    """A text with a masked word, and the top predictions of three models.

    Attributes:
        text: the text.
        before: predictions of the untrained model.
        after: predictions of the trained model.
        bundled: those of the model that comes with bertkit; empty if it isn't installed.
    """

    text: str
    before: str
    after: str
    bundled: str = ""


@dataclass(frozen=True)
class DemoFacts:
    """The data shown in the report.

    Attributes:
        accuracies: the result.
        examples: masked texts with predictions before and after.
        history: the run's training history.
        settings: tables of settings by title.
        corpus: the corpus counts by name.
        run: the run's folder.
    """

    accuracies: Accuracies
    examples: Sequence[Example]
    history: TrainingHistory
    settings: Mapping[str, Mapping[str, Any]]
    corpus: Mapping[str, str | int]
    run: Path


def build_report(facts: DemoFacts) -> Report:
    """Build the report."""
    run = quote(str(facts.run))
    sections: list[Section] = [
        _accuracy_bars(facts.accuracies),
        _examples_table(facts.examples),
        Charts(
            draw_curves(facts.history, (*MASKED_WORDS, NEXT_SENTENCE, SPEED[0])),
            title="Training curves",
            note="Training values are means over neighboring steps.",
        ),
        Table(["", "Number"], list(facts.corpus.items()), title="Data"),
        Command(
            f"bertkit fill-mask --model {run} {quote('The function returns a [MASK].')}\n"
            f"bertkit inspect {run}\n"
            "bertkit demo --help",
            title="Next steps",
        ),
    ]
    sections += [tabulate_settings(values, title) for title, values in facts.settings.items()]
    minutes = (facts.history.train.last("elapsed_seconds") or 0.0) / 60
    found, least = facts.accuracies.model, facts.accuracies.most_frequent
    return Report(
        title=f"Fills {format_percent(found)} of the blanks right (always the most frequent token:"
        f" {format_percent(least)}) after {minutes:.1f} minutes",
        name="A BERT trained from scratch",
        summary=f"It was trained on the documentation that comes with Python for {minutes:.1f}"
        f" minutes to fill masked words. {describe_result(facts.accuracies)}",
        sections=sections,
    )


def _examples_table(examples: Sequence[Example]) -> Table:
    """Tabulate the filled blanks, with a column for the bundled model if it was there."""
    columns = {
        "Text": [example.text for example in examples],
        "Before": [example.before for example in examples],
        "After": [example.after for example in examples],
    }
    note = "The three most likely words according to the untrained and the trained model"
    if any(example.bundled for example in examples):
        columns["Bundled model"] = [example.bundled for example in examples]
        note += ", and the model that comes with bertkit, which is larger and read longer"
    return Table(
        list(columns),
        [list(row) for row in zip(*columns.values(), strict=True)],
        title="Five masked words, before and after training",
        note=note + ".",
    )


def describe_result(accuracies: Accuracies) -> str:
    """Describe the result in two sentences, whether the model or a baseline is better."""
    ratio = accuracies.model / accuracies.most_frequent if accuracies.most_frequent else 0.0
    winner = (
        "The model is better than" if accuracies.model > accuracies.neighbors else "Still better is"
    )
    return (
        f"On held-out packages it predicts {format_percent(accuracies.model)} of the blanks right,"
        f" {ratio:.1f} times as many as always predicting “{accuracies.most_frequent_token}”"
        f" ({format_percent(accuracies.most_frequent)}). {winner} the best guess from the two"
        " neighboring"
        f" words ({format_percent(accuracies.neighbors)})."
    )


def _accuracy_bars(accuracies: Accuracies) -> Bars:
    token = accuracies.most_frequent_token
    guessers = {
        "This model": accuracies.model,
        "Best guess from the two neighboring words": accuracies.neighbors,
        f"Always the most frequent token, “{token}”": accuracies.most_frequent,
    }
    return Bars(
        [
            Bar(name, share, format_percent(share), is_highlighted=number == 0)
            for number, (name, share) in enumerate(guessers.items())
        ],
        title="Correctly predicted masked words",
        note=f"The same {accuracies.num_masked:,} masked tokens for all three, with the same"
        " corrupted text around them, in packages that were held out as a whole.",
    )
