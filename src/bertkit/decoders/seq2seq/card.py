"""The model card, the report and `metrics.json` of an encoder-decoder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertkit._version import __version__
from bertkit.base.errors import pluralize
from bertkit.checkpoints.run_folder import FinishedRecord, SavedNumber
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.generation.seq2seq_generator import GeneratedText
from bertkit.decoders.seq2seq.examples import PairSetCounts
from bertkit.decoders.seq2seq.pairs import Pair
from bertkit.decoders.seq2seq.settings import KINDS, Kind
from bertkit.recipes import model_card
from bertkit.recipes.model_card import LibraryName, ModelFacts, plain
from bertkit.reports.report import Callout, Charts, Report, Section, Table
from bertkit.reports.text import Cell, MetricCell, format_metric, make_legible, shorten
from bertkit.tasks.sections import state_finding
from bertkit.training.history import TrainingHistory
from bertkit.training.sections import LOSS, PACE, STEPS, Curve, draw_curves


class SavedSeq2Seq(FinishedRecord):
    """The content of `metrics.json`."""

    kind: str  # a key of `KINDS`
    metric: str  # the one that selected the best step
    metrics: dict[str, SavedNumber]
    signatures: dict[str, str]  # how the metrics were computed
    baseline: dict[str, SavedNumber]  # of copying the beginning of each source
    num_epochs: float
    averaged_steps: tuple[int, ...]  # empty if the model is the best step's
    train: PairSetCounts
    dev: PairSetCounts


@dataclass(frozen=True)
class Seq2SeqFacts(ModelFacts):
    """The data shown in the report and the card."""

    saved: SavedSeq2Seq
    config: EncoderDecoderConfig

    @property
    def kind(self) -> Kind:
        """The kind of task."""
        return KINDS[self.saved.kind]

    @property
    def origin(self) -> str:
        """A description of the initial weights."""
        if self.record.settings["model"] is None:
            return "trained from random weights"
        return f"encoder and decoder initialized from {self.initial_model}"

    @property
    def training(self) -> str:
        """A description of how long it was trained, and of its weights: averaged, or of a step."""
        saved = self.saved
        ending = ", and ended early" if saved.has_ended_early else ""
        weights = f"the weights after step {saved.best_step:,}"
        if saved.averaged_steps:
            steps = ", ".join(f"{step:,}" for step in saved.averaged_steps)
            weights = f"the mean of the weights after the steps {steps}"
        return (
            f"trained for {pluralize(saved.num_steps, 'step')},"
            f" {pluralize(saved.num_epochs, 'epoch')}{ending}; this is {weights}."
        )


NUM_SHOWN, SHOWN_COLUMNS = 20, 400  # number of texts, and width of each


def build_seq2seq_page(
    facts: Seq2SeqFacts,
    history: TrainingHistory,
    pairs: Sequence[Pair],
    answers: Sequence[GeneratedText],
) -> Report:
    """Build the report; the answers are the hypotheses for the held-out pairs, as many as pairs."""
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
        *map(Callout, saved.warnings),
        tabulate_metrics(facts),
        show_answers(pairs, answers),
        Charts(draw_curves(history, curves, STEPS), title="Training curves"),
        model_card.tabulate_counts(saved.train, saved.dev),
        *facts.list_settings(),
    ]
    copied = format_metric(saved.metric, saved.baseline.get(saved.metric))
    where = f"{saved.dev.num_pairs:,} held-out pairs"
    beside = f"copying the source: {copied}"
    title = state_finding(saved.metric, saved.metrics[saved.metric], where, beside)
    summary = f"{facts.kind.summary} {facts.origin.capitalize()}. It {facts.training}"
    return Report(title, summary, sections, name=facts.name)


def tabulate_metrics(facts: Seq2SeqFacts) -> Table:
    """Tabulate the held-out metrics beside those of the copying baseline."""
    saved = facts.saved
    rows: list[list[Cell]] = [
        [
            name,
            MetricCell.of(name, value),
            MetricCell.of(name, saved.baseline.get(name)),
        ]
        for name, value in saved.metrics.items()
    ]
    signatures = "; ".join(f"{name}: {text}" for name, text in saved.signatures.items())
    return Table(
        ["Metric", "Value", "Copying the beginning"],
        rows,
        title="Evaluation",
        note=f"The best step was selected on the same texts. {signatures}",
    )


def show_answers(pairs: Sequence[Pair], answers: Sequence[GeneratedText]) -> Table:
    """Tabulate the first held-out sources with their references and hypotheses."""
    rows: list[list[Cell]] = [
        [shorten(text, SHOWN_COLUMNS) for text in (pair.source, pair.target, answer.text)]
        for pair, answer in zip(pairs[:NUM_SHOWN], answers, strict=False)
    ]
    return Table(
        ["Source", "Reference", "Output"],
        rows,
        title="Sample outputs",
        note=f"The first {len(rows)} of {len(pairs):,} held-out texts.",
    )


def build_seq2seq_card(facts: Seq2SeqFacts) -> str:
    """Build the card's text."""
    made = (
        f"{facts.kind.summary} {plain(facts.origin.capitalize())} with bertkit {__version__};"
        " `report.html` shows more."
    )
    library: LibraryName = "transformers" if facts.config.is_transformers_own else "bertkit"
    task = {"pipeline_tag": facts.kind.pipeline_tag, "metrics": [facts.saved.metric]}
    sections = (
        describe_use(facts),
        describe_text_metrics(facts),
        model_card.describe_counts(facts.saved.train, facts.saved.dev),
        describe_start(facts),
    )
    return model_card.build_card(facts, library, task, made, *sections)


def describe_use(facts: Seq2SeqFacts) -> str:
    """Build the section with the command that uses the model."""
    name = json.dumps(make_legible(facts.name), ensure_ascii=False)
    return f"## How to use it\n\n```\nbertkit {facts.kind.usage.format(name)}\n```"


def describe_text_metrics(facts: Seq2SeqFacts) -> str:
    """Build the section with metrics, their signatures and warnings."""
    saved = facts.saved
    rows = [
        [
            name,
            format_metric(name, value),
            format_metric(name, saved.baseline[name]) if name in saved.baseline else "",
        ]
        for name, value in saved.metrics.items()
    ]
    columns = ["metric", "value", "copying the beginning of the source"]
    parts = [model_card.tabulate(columns, rows)]
    if saved.signatures:
        signatures = [list(item) for item in saved.signatures.items()]
        parts.append(model_card.tabulate(["metric", "signature"], signatures))
    held_out = f"{saved.dev.num_pairs:,} held-out pairs, which also selected the best step"
    return model_card.describe_result(held_out, *parts, warnings=saved.warnings)


def describe_start(facts: Seq2SeqFacts) -> str:
    """Build the section on training: steps, the initial encoder's files and the settings."""
    made = f"The model was {facts.training}"
    if facts.record.settings["model"] is None:
        return model_card.describe_training(facts, made)
    name = plain(facts.initial_model)
    origin = f"Encoder and decoder were initialized from these files of {name}:"
    return model_card.describe_training(facts, made, origin)
