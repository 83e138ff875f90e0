"""The report of an encoder-decoder: metrics, training curves, sample outputs and data."""

import math
from collections.abc import Sequence
from dataclasses import replace

from bertkit.base.wording import pluralize
from bertkit.data.tables.parallel import Pair
from bertkit.generation.seq2seq_generator import GeneratedText
from bertkit.recipes.model_card import show_number
from bertkit.recipes.seq2seq.facts import Seq2SeqFacts
from bertkit.reports.cells import Cell
from bertkit.reports.report import Charts, Paragraph, Report, Section, Table
from bertkit.reports.text import shorten
from bertkit.training.records.history import TrainingHistory
from bertkit.training.records.sections import (
    LOSS,
    PACE,
    STEPS,
    Curve,
    draw_curves,
    tabulate_settings,
)

NUM_SHOWN, SHOWN_COLUMNS = 20, 400  # number of texts, and width of each


def build_page(
    facts: Seq2SeqFacts,
    history: TrainingHistory,
    pairs: Sequence[Pair],
    answers: Sequence[GeneratedText],
) -> Report:
    """Build the report.

    Args:
        facts: the data to show.
        history: the run's training history.
        pairs: the held-out pairs.
        answers: the hypotheses for them, as many as pairs.
    """
    saved = facts.saved
    is_smoothed = facts.record.settings["label_smoothing"] > 0.0
    loss = "Loss (training loss with label smoothing)" if is_smoothed else LOSS.title
    curves = (
        replace(LOSS, title=loss, starts_at_zero=True),
        Curve(saved.metric, f"{saved.metric} of greedy outputs", saved.metric),
        Curve("word_accuracy", "Next-word accuracy", "share", is_percent=True),
        *PACE,
    )
    sections: list[Section] = [
        tabulate_metrics(facts),
        *(Paragraph(warning, title="Warning") for warning in saved.warnings),
        Charts(draw_curves(history, curves, STEPS), title="Training curves"),
        show_answers(pairs, answers),
        tabulate_data(facts),
        tabulate_settings(facts.settings),
    ]
    return Report(title=facts.name, summary=summarize(facts), sections=sections)


def summarize(facts: Seq2SeqFacts) -> str:
    """Summarize the run in two sentences."""
    saved = facts.saved
    value = saved.metrics[saved.metric]
    ending = ", and ended early" if saved.has_ended_early else ""
    return (
        f"{facts.kind.summary} {facts.origin.capitalize()}: {saved.metric}"
        f" {show_number(value)} on {saved.dev.num_pairs:,} held-out pairs. It trained for"
        f" {pluralize(saved.num_steps, 'step')},"
        f" {pluralize(saved.num_epochs, 'epoch')}{ending}; this is"
        f" {facts.weights}."
    )


def tabulate_metrics(facts: Seq2SeqFacts) -> Table:
    """Tabulate the held-out metrics beside those of the copying baseline."""
    saved = facts.saved
    rows: list[list[Cell]] = [
        [name, _cell(value), _cell(saved.baseline.get(name))]
        for name, value in saved.metrics.items()
    ]
    signatures = "; ".join(f"{name}: {text}" for name, text in saved.signatures.items())
    return Table(
        ["Metric", "Value", "Copying the beginning"],
        rows,
        title="Evaluation",
        note=f"The best step was selected on the same texts. {signatures}",
    )


def _cell(value: float | None) -> Cell:
    return math.nan if value is None else value


def show_answers(pairs: Sequence[Pair], answers: Sequence[GeneratedText]) -> Table:
    """Tabulate the first held-out sources with their references and hypotheses."""
    shown = zip(pairs[:NUM_SHOWN], answers, strict=False)
    rows: list[list[Cell]] = [
        [shorten(text, SHOWN_COLUMNS) for text in (pair.source, pair.target, answer.text)]
        for pair, answer in shown
    ]
    return Table(
        ["Source", "Reference", "Output"],
        rows,
        title="Sample outputs",
        note=f"The first {len(rows)} of {len(pairs):,} held-out texts.",
    )


def tabulate_data(facts: Seq2SeqFacts) -> Table:
    """Tabulate the counts of the data."""
    train, dev = facts.saved.train, facts.saved.dev
    rows: list[list[Cell]] = [[words, *numbers] for words, *numbers in facts.list_counts()]
    return Table(["", train.name, dev.name], rows, title="Data")
