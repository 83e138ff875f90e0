"""The end of a run: the model's folder with all that is known of it."""

from dataclasses import dataclass
from pathlib import Path

from bertkit.base.files import write_file
from bertkit.generation.seq2seq_file import write_seq2seq_file
from bertkit.recipes.model_card import CARD_FILE
from bertkit.recipes.seq2seq.card import build_card
from bertkit.recipes.seq2seq.evaluation import (
    Choice,
    Seq2SeqEvaluation,
    choose_weights,
    evaluate_model,
)
from bertkit.recipes.seq2seq.facts import SavedResult, Seq2SeqFacts
from bertkit.recipes.seq2seq.job import Seq2SeqContext
from bertkit.recipes.seq2seq.page import build_page
from bertkit.recipes.seq2seq.schedule import count_epochs, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.warnings import warn_of_best_step
from bertkit.reports.report import write_report
from bertkit.training.finished import define, drop_checkpoints
from bertkit.training.records.history import TrainingHistory
from bertkit.training.records.log import read_log
from bertkit.training.run import Run, RunState

REPORT_FILE = "report.html"


@dataclass(frozen=True)
class Seq2SeqResult:
    """What a run came to.

    Attributes:
        output: the model's folder.
        saved: what `metrics.json` says.
    """

    output: Path
    saved: SavedResult


def finish(
    run: Run, context: Seq2SeqContext, state: RunState, settings: Seq2SeqSettings, num_steps: int
) -> Seq2SeqResult:
    """Choose the weights, hold them against the held-out pairs and write the model's folder.

    `metrics.json` comes last; then the checkpoints go.
    """
    choice = choose_weights(run, context, state, settings, num_steps)
    final = evaluate_model(choice.context)
    history = TrainingHistory.from_rows(read_log(run.log_path))
    saved = describe_result(choice, final, state, settings, history)
    output = run.folder.parent
    saved = write_model(output, run, choice.context, final, saved, history)
    if not settings.keep_checkpoints:
        drop_checkpoints(run)
    return Seq2SeqResult(output, saved)


def describe_result(
    choice: Choice,
    final: Seq2SeqEvaluation,
    state: RunState,
    settings: Seq2SeqSettings,
    history: TrainingHistory,
) -> SavedResult:
    """What is told of the run for good."""
    context = choice.context
    metric = context.kind.metric
    return SavedResult(
        kind=context.saved.kind,
        metric=metric,
        metrics=define(final.metrics),
        signatures=final.signatures,
        baseline=define(final.baseline),
        warnings=(
            *choice.warnings,
            *final.warnings,
            *warn_of_best_step(metric, history.held_out[metric]),
        ),
        num_steps=state.step,
        num_epochs=count_epochs(order_pairs(context.train, settings), state.step),
        best_step=choice.best_step,
        averaged_steps=choice.averaged_steps,
        has_ended_early=state.has_ended_early,
        train=context.counts["train"],
        dev=context.counts["dev"],
    )


def write_model(
    output: Path,
    run: Run,
    context: Seq2SeqContext,
    final: Seq2SeqEvaluation,
    saved: SavedResult,
    history: TrainingHistory,
) -> SavedResult:
    """Write a model's folder; returns what is saved with the checksums of its files."""
    record = run.read_record()
    assert record is not None, "a run that is finished was begun"
    files = {
        **context.model.save_pretrained(output),
        **context.save_tokenizer(output),
        **write_seq2seq_file(output, context.saved),
    }
    saved = saved.model_copy(update={"files": {name: file.sha256 for name, file in files.items()}})
    facts = Seq2SeqFacts(output.resolve().name, record, context.kind, saved, context.model.config)
    page = build_page(facts, history, context.data.dev.pairs, final.answers)
    write_report(output / REPORT_FILE, page)
    write_file(output / CARD_FILE, build_card(facts).encode())
    saved.write(output)
    return saved
