"""The report page of one run, with example outputs of a pre-trained model."""

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from bertkit.base.errors import BertkitError, InputError, storage_errors
from bertkit.base.wings import TEXT_TASKS
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.huggingface import WEIGHTS_FILE
from bertkit.recipes.finetune.result import choose_curves, epochs, tabulate_data
from bertkit.recipes.pretrain.corpus import describe_corpus
from bertkit.recipes.pretrain.objective_report import find_report
from bertkit.recipes.report.facts import RunFacts
from bertkit.recipes.settings import ReportSettings
from bertkit.reports.report import Charts, Command, Folded, Paragraph, Report, Section, Table
from bertkit.reports.text import format_metric, format_percent
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.metrics.shares import COUNT, describe_share, show_share
from bertkit.tasks.sections import build_sections, show_name, state_metric
from bertkit.training.sections import (
    LOSS,
    MINUTES,
    PACE,
    SPEED,
    STEPS,
    Curve,
    draw_curves,
    tabulate_choices,
    tabulate_environment,
    tabulate_incidents,
    tabulate_settings,
    tabulate_speed,
)

MAX_BYTES = 2 << 30  # weights up to this size load and compute in seconds
USERS_NOTE = "The texts are those of --text."
HELD_OUT_NOTE = "The texts are held-out sentences, which the run has never trained on."
GENERAL_NOTE = "The texts are general English, because the run’s shards weren’t named (--data)."


def show_examples(facts: RunFacts, settings: ReportSettings) -> list[Section]:
    """Tabulate filled blanks or continuations; a paragraph says why there are none."""
    report, checkpoint, texts = find_report(facts.objective), facts.checkpoint, settings.text
    title = report.title
    if checkpoint is None:
        return [Paragraph("The run has no checkpoint yet.", title=title)]
    try:
        with storage_errors(checkpoint / WEIGHTS_FILE, "read"):
            num_bytes = (checkpoint / WEIGHTS_FILE).stat().st_size
        if num_bytes > MAX_BYTES:
            return [Paragraph("The model is too large to run for a report.", title=title)]
        rows = report.make_examples(checkpoint, facts.shards, texts, settings.examples)
    except BertkitError as error:
        if texts and isinstance(error, InputError):
            raise
        # A running job removes old checkpoints, shards may be damaged, sentences may exceed the
        # model's maximum length; the report is useful without examples.
        return [Paragraph(f"There are no examples: {error}.", title=title)]
    if not rows:
        return []
    note = USERS_NOTE if texts else GENERAL_NOTE if facts.shards is None else HELD_OUT_NOTE
    note += f" The outputs are those of {checkpoint.name}."
    return [Table(["Text", report.output, "Original"], rows, title, note)]


MAX_METRICS = 6  # a task may have one metric per label
MEANS = "Training values are means over a few steps."
RESUMING = (
    "If the run was interrupted, repeat the command that started it to resume from its newest"
    " checkpoint."
)
NOT_METRICS = {"step", "tokens", "elapsed_seconds", "loss"}


def build_page(facts: RunFacts, examples: Sequence[Section]) -> Report:
    """Build the page."""
    history, curves, across = facts.history, choose_all_curves(facts), STEPS
    result: list[Section] = []
    if (saved := facts.result) is not None:
        result = build_sections(
            Evaluation(
                saved.metrics,
                saved.intervals,
                calibration=saved.calibration,
                warnings=saved.warnings,
            )
        )
        if saved.num_steps:
            across = epochs(saved.num_epoch_steps)
    data: list[Section] = []
    if saved is not None:
        data += tabulate_data(saved)
    elif facts.shards is not None:
        rows = list(describe_corpus(facts.shards).items())
        data.append(Table(["Count", "Value"], rows, title="Training data"))
    sections: list[Section] = [
        *result,
        *examples,
        Charts(
            draw_curves(history, curves, across),
            title="Training curves",
            note=MEANS,
        ),
        Command(
            "\n".join(list_commands(facts)),
            title="Next commands",
            note="" if facts.is_finished else RESUMING,
        ),
        *([tabulate_incidents(history)] if history.incidents else []),
        tabulate_choices(facts.settings, facts.defaults),
        *data,
        tabulate_speed(history),
        *fold(facts),
    ]
    return Report(
        title=state_run(facts),
        summary=summarize(facts),
        sections=[each for each in sections if not isinstance(each, Charts) or each.charts],
        name=facts.name,
    )


def fold(facts: RunFacts) -> list[Folded]:
    """Return what few readers ask for, folded."""
    history, curves = facts.history, choose_all_curves(facts)
    charts = {
        "Training curves over time": draw_curves(history, curves[:2], MINUTES),
        "Learning rate, gradient and speed": draw_curves(history, (*PACE, *SPEED)),
    }
    tables = {
        "Programs and machine": tabulate_environment(facts.record.versions),
        "Model config": tabulate_settings(list_sizes(facts), ""),
        "All settings": tabulate_settings(facts.settings, ""),
    }
    drawn = [Folded(title, [Charts(found)]) for title, found in charts.items() if found]
    return [*drawn, *(Folded(title, [replace(each, title="")]) for title, each in tables.items())]


def state_run(facts: RunFacts) -> str:
    """State a run's result in a line: the latest on held-out data, and after how much."""
    history, result = facts.history, facts.result
    if result is not None:
        where = f"{result.dev.num_examples:,} held-out rows"
        measured = result.metrics, result.intervals, result.baseline
        return state_metric(result.metric, where, *measured)
    after = f"{history.num_steps:,} of {facts.record.num_steps:,} steps"
    if facts.task is None:
        number = history.train.last("tokens") or 0.0
        large = ((1e9, "billion"), (1e6, "million"))
        scaled = (f"{number / one:,.1f} {word}" for one, word in large if number >= one)
        after = f"{next(scaled, f'{number:,.0f}')} tokens"
    after = after if facts.is_finished else f"{after}, not finished"
    found = last_metrics(facts)
    name, words = find_report(facts.objective).finding
    if facts.task is None and name in found:
        return f"{state_share(facts, words, name, found[name])} after {after}"
    if not found:
        return f"Not evaluated yet: {after}"
    name = [*found][min(1, len(found) - 1)]  # the first besides the loss says most
    shown = f"{show_name(name_metric(name, facts))} {format_metric(name, found[name])}"
    return f"{shown} after {after}"


def state_share(facts: RunFacts, words: str, name: str, share: float) -> str:
    """State a share with its number, its interval and a guess beside it, where they are known."""
    number = facts.history.held_out.last(name.replace("accuracy", COUNT))
    shown = words.format(format_percent(share), f"{number:,.0f}" if number else "the")
    notes = [show_share(share, number) if number else "", guess(facts)]
    beside = "; ".join(filter(None, notes))
    return f"{shown} ({beside})" if beside else shown


def name_metric(name: str, *runs: RunFacts) -> str:
    """Return the name to display of a metric of some runs."""
    shown = (find_report(facts.objective).metrics for facts in runs)
    return next((names[name] for names in shown if name in names), name)


def guess(facts: RunFacts) -> str:
    """Describe what always guessing the most frequent token achieves; empty if it isn't known."""
    if facts.shards is None:
        return ""
    counts = facts.shards.token_counts
    share = float(counts.max()) / max(1, facts.shards.manifest.train.tokens)
    return f"always the most frequent token: {format_percent(share)}"


def summarize(facts: RunFacts) -> str:
    """Summarize the run in a few sentences."""
    history, phrase = facts.history, find_report(facts.objective).phrase
    state = "It isn’t finished: it is still running or was interrupted."
    if history.has_ended_early:
        state = "It stopped early, because the metric had stopped improving."
    elif facts.is_finished:
        state = "It is finished."
    if facts.task in TEXT_TASKS:
        start = facts.settings.get("model")
        initial = "from random weights" if start is None else f"starting from {start}"
        made = f"{TEXT_TASKS[facts.task].model}, {initial}"
    elif facts.task is not None:
        made = f"{facts.initial_model}, fine-tuned for the task {facts.task}"
    elif facts.record.settings.get("model"):
        made = f"{facts.initial_model}, pre-trained further{phrase}"
    else:
        title = find_family(facts.record.model).title
        made = f"{title} pre-trained from random weights ({facts.initial_model}){phrase}"
    tokens, seconds = history.train.last("tokens") or 0, history.train.last("elapsed_seconds") or 0
    text = (
        f"{made}: {history.num_steps:,} of {facts.record.num_steps:,} steps, {tokens:,.0f} tokens,"
        f" {seconds / 60:.1f} minutes. {state}"
    )
    if facts.result is not None and facts.result.cross_validated is not None:
        text += f" {facts.result.cross_validated.describe()}."
    found = last_metrics(facts)
    last = ", ".join(
        f"{name_metric(name, facts)} {show_metric(facts, name, value)}"
        for name, value in found.items()
    )
    return f"{text} Latest on held-out data: {last}." if last else text


def show_metric(facts: RunFacts, name: str, value: float) -> str:
    """Format a metric of the last evaluation, a share of pre-training with number and interval."""
    count = name.replace("accuracy", COUNT)
    number = facts.history.held_out.last(count)
    if number is None or facts.task is not None or count == name:
        return format_metric(name, value)
    return describe_share({name: value, count: number}, name)


def last_metrics(facts: RunFacts) -> dict[str, float]:
    """Return the metrics of the last evaluation."""
    held_out = facts.history.held_out
    found = {name: held_out.last(name) for name in name_metrics(facts)}
    return {name: value for name, value in found.items() if value is not None}


def name_metrics(facts: RunFacts) -> list[str]:
    """Return the names of the metrics to show, the loss first."""
    if facts.task is None:
        return [
            name
            for name in find_report(facts.objective).metrics
            if name in {"loss", *facts.history.held_out.names}
        ]
    others = [name for name in facts.history.held_out.names if name not in NOT_METRICS]
    return ["loss", *others[:MAX_METRICS]]


def choose_all_curves(facts: RunFacts) -> tuple[Curve, ...]:
    """Return the curves to draw, the two most important first."""
    if facts.task is None:
        loss, accuracy, *others = find_report(facts.objective).curves
        # With a single objective, its loss equals the total loss.
        return (LOSS, accuracy, *([loss] if others else []), *others)
    return choose_curves(*name_metrics(facts)[1:])


def list_sizes(facts: RunFacts) -> dict[str, str | float]:
    """Return the scalar values of the model's config."""
    model = facts.record.model
    return {name: value for name, value in model.items() if isinstance(value, str | int | float)}


def list_commands(facts: RunFacts) -> list[str]:
    """Return commands for the next steps with the run."""
    run, output = quote(str(facts.run.folder)), quote(str(facts.run.folder.parent))
    if facts.writes_texts and facts.is_finished:
        return [f"bertkit {facts.task} {output} --help"]
    if facts.task is not None and facts.result is None:
        return ["bertkit finetune --help"]
    if facts.task is not None:
        return [f"bertkit {facts.task} --help", f"bertkit evaluate {output} TEST-FILE"]
    if facts.checkpoint is None:
        return ["bertkit pretrain --help"]
    command, text = find_report(facts.objective).choose_trial(facts.shards, facts.checkpoint)
    return [
        f"bertkit {command} {run} {quote(text)}",
        f"bertkit inspect {run}",
        f"bertkit finetune classify --model {run} --train TRAIN-FILE --output OUTPUT",
    ]
