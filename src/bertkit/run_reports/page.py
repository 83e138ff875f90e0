"""The report page of one run."""

from collections.abc import Sequence
from shlex import quote

from bertkit.objectives.settings import ObjectiveName
from bertkit.recipes.finetune.page import choose_curves, epochs, tabulate_data
from bertkit.recipes.finetune.result import SavedResult, recall_evaluation
from bertkit.recipes.pretrain.corpus import describe_corpus
from bertkit.recipes.pretrain.curves import CURVES
from bertkit.reports.report import Charts, Command, Paragraph, Report, Section, Table
from bertkit.run_reports.facts import RunFacts
from bertkit.tasks.sections import tabulate_metrics
from bertkit.training.dump import list_dumps
from bertkit.training.records.sections import (
    LOSS,
    MINUTES,
    PACE,
    SPEED,
    STEPS,
    Across,
    Curve,
    draw_curves,
    tabulate_choices,
    tabulate_environment,
    tabulate_incidents,
    tabulate_settings,
    tabulate_speed,
)

MAX_METRICS = 6  # a task may have one metric per label
RESUMING = (
    "If the run was interrupted, repeat the command that started it to resume from its newest"
    " checkpoint."
)
NOT_METRICS = {"step", "tokens", "elapsed_seconds", "loss"}
# Display names of pre-training metrics.
SHOWN = {
    "loss": "loss",
    "mlm_accuracy": "masked accuracy",
    "nsp_accuracy": "next-sentence accuracy",
    "clm_accuracy": "next-word accuracy",
    "clm_perplexity": "perplexity",
    "mlm_bits_per_character": "bits per masked character",
    "clm_bits_per_character": "bits per character",
}
WAYS: dict[ObjectiveName, str] = {
    "bert": "",
    "mlm": " without next-sentence prediction",
    "causal": " as a left-to-right model",
}


def build_page(facts: RunFacts, examples: Sequence[Section]) -> Report:
    """Build the page.

    Args:
        facts: the facts of the run.
        examples: sections to show after the curves.
    """
    history, curves = facts.history, choose_all_curves(facts)
    sections: list[Section] = [
        *([] if facts.result is None else show_result(facts.result)),
        Charts(
            draw_curves(history, curves, choose_axis(facts)),
            title="Training curves",
            note="Training values are means over neighboring steps.",
        ),
        *examples,
        Command(
            "\n".join(list_commands(facts)),
            title="Next commands",
            note="" if facts.is_finished else RESUMING,
        ),
        Charts(draw_curves(history, curves[:2], MINUTES), title="Training curves over time"),
        Charts(draw_curves(history, PACE), title="Learning rate and gradient"),
        tabulate_speed(history),
        Charts(draw_curves(history, SPEED)),
        tabulate_incidents(history),
        *show_data(facts),
        tabulate_choices(facts.settings, facts.defaults),
        tabulate_environment(facts.record.versions),
        tabulate_settings(list_sizes(facts), "Model config"),
        tabulate_settings(facts.settings, "All settings"),
    ]
    return Report(
        title=facts.name,
        summary=summarize(facts),
        sections=[each for each in sections if not isinstance(each, Charts) or each.charts],
    )


def summarize(facts: RunFacts) -> str:
    """Summarize the run in a few sentences."""
    history = facts.history
    if facts.is_encoder_decoder:
        start = facts.settings.get("model")
        initial = "from random weights" if start is None else f"starting from {start}"
        made = f"An encoder-decoder trained to {facts.task}, {initial}"
    elif facts.task is not None:
        made = f"{facts.initial_model}, fine-tuned for the task {facts.task}"
    elif facts.record.settings.get("start_from"):
        made = f"{facts.initial_model}, pre-trained further{WAYS[facts.objective]}"
    else:
        made = (
            f"A BERT pre-trained from random weights ({facts.initial_model}){WAYS[facts.objective]}"
        )
    tokens, seconds = history.train.last("tokens") or 0, history.train.last("elapsed_seconds") or 0
    text = (
        f"{made}: {history.num_steps:,} of {facts.record.num_steps:,} steps, {tokens:,.0f} tokens,"
        f" {seconds / 60:.1f} minutes. {describe_state(facts)}"
    )
    last = ", ".join(
        f"{SHOWN.get(name, name)} {value:.4g}" for name, value in last_metrics(facts).items()
    )
    return f"{text} Latest on held-out data: {last}." if last else text


def describe_state(facts: RunFacts) -> str:
    """Say whether the run is finished."""
    if facts.history.has_ended_early:
        return "It stopped early, because the metric had stopped improving."
    if facts.is_finished:
        return "It is finished."
    return "It isn’t finished: it is still running or was interrupted."


def last_metrics(facts: RunFacts) -> dict[str, float]:
    """Return the metrics of the last evaluation."""
    held_out = facts.history.held_out
    found = {name: held_out.last(name) for name in name_metrics(facts)}
    return {name: value for name, value in found.items() if value is not None}


def name_metrics(facts: RunFacts) -> list[str]:
    """Return the names of the metrics to show, the loss first."""
    if facts.task is None:
        return [name for name in SHOWN if name in {"loss", *facts.history.held_out.names}]
    others = [name for name in facts.history.held_out.names if name not in NOT_METRICS]
    return ["loss", *others[:MAX_METRICS]]


def choose_all_curves(facts: RunFacts) -> tuple[Curve, ...]:
    """Return the curves to draw, the two most important first."""
    if facts.task is None:
        loss, accuracy, *others = CURVES[facts.objective]
        # With a single objective, its loss equals the total loss.
        return (LOSS, accuracy, *([loss] if others else []), *others)
    return choose_curves(*name_metrics(facts)[1:])


def choose_axis(facts: RunFacts) -> Across:
    """Return epochs as the x axis if their length is known, else steps."""
    result = facts.result
    if result is None or result.best_epoch <= 0:
        return STEPS
    return epochs(max(1, round(result.best_step / result.best_epoch)))


def show_result(result: SavedResult) -> list[Section]:
    """Build the sections on a fine-tuned model's metrics."""
    sections: list[Section] = [Paragraph(warning) for warning in result.warnings]
    sections.append(tabulate_metrics(recall_evaluation(result)))
    if (baseline := result.baseline.get(result.metric)) is not None:
        text = f"Always predicting the most frequent label has {result.metric} {baseline:.4f}."
        sections.append(Paragraph(text))
    return sections


def show_data(facts: RunFacts) -> list[Section]:
    """Build the sections on the training data, if it is known."""
    if facts.result is not None:
        return [*tabulate_data({"train": facts.result.train, "dev": facts.result.dev})]
    if facts.shards is not None:
        rows = list(describe_corpus(facts.shards).items())
        return [Table(["Count", "Value"], rows, title="Training data")]
    return []


def list_sizes(facts: RunFacts) -> dict[str, str | float]:
    """Return the scalar values of the model's config."""
    model = facts.record.model
    return {name: value for name, value in model.items() if isinstance(value, str | int | float)}


def list_commands(facts: RunFacts) -> list[str]:
    """Return commands for the next steps with the run."""
    run, output = quote(str(facts.run.folder)), quote(str(facts.run.folder.parent))
    dumps = [f"bertkit replay {quote(str(path))}" for path in list_dumps(facts.run.folder)[:1]]
    if facts.is_encoder_decoder and facts.is_finished:
        return [f"bertkit {facts.task} {output} --help", *dumps]
    if facts.task is not None and facts.result is None:
        return ["bertkit finetune --help", *dumps]
    if facts.task is not None:
        return [f"bertkit {facts.task} --help", f"bertkit evaluate {output} TEST-FILE", *dumps]
    if facts.checkpoint is None:
        return ["bertkit pretrain --help", *dumps]
    is_causal = facts.objective == "causal"
    try_it = (
        ("generate", "She opened the") if is_causal else ("fill-mask", "She opened the [MASK].")
    )
    return [
        f"bertkit {try_it[0]} {run} {quote(try_it[1])}",
        f"bertkit inspect {run}",
        f"bertkit finetune classify --model {run} --train TRAIN-FILE --output OUTPUT",
        *dumps,
    ]
