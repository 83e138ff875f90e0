"""The model card: `README.md`, with the YAML header that the Hub reads.

Names of files and labels are untrusted: the header quotes them as JSON strings, which are valid
YAML, and the text below escapes Markdown and HTML.
"""

import json
import math
from collections.abc import Sequence
from itertools import islice

from bertkit._version import __version__
from bertkit.base.wording import pluralize
from bertkit.recipes.finetune.facts import FineTuningFacts, count_rows
from bertkit.recipes.finetune.search.comparison import SELECTION_BIAS, Comparison, show_spread
from bertkit.reports.text import make_legible, show
from bertkit.tasks.table import TASKS

CARD_FILE = "README.md"
PICTURE_FILE = "confusion_matrix.svg"
# Source: the Hub's list of tasks; other tasks have no tag.
PIPELINE_TAGS = {
    "classify": "text-classification",
    "regress": "text-classification",
    "tag": "token-classification",
    "answer": "question-answering",
    "choose": "multiple-choice",
}
INTENDED_USE = """## Intended use

*To be filled in: what the model is for, for whom, what not to use it for, and its license.*"""
LEFT_TO_RIGHT = (
    " It is causal, so the last token represents a text; transformers takes the first one and"
    " gives other results."
)
MAX_NAME_COLUMNS = 200
MAX_LABELS = 100
MAX_METRICS = 100  # there may be one per label
SPECIAL = "\\`*_[]|~#"


def build_card(facts: FineTuningFacts) -> str:
    """Build the card's text."""
    made = (
        f"{TASKS[facts.task].summary} Fine-tuned from {plain(facts.parent)} with bertkit"
        f" {__version__}; `report.html` shows more."
    )
    parts = [
        build_header(facts),
        f"# {plain(facts.name)}",
        made,
        INTENDED_USE,
        describe_result(facts),
        *([] if facts.comparison is None else [describe_search(facts.comparison)]),
        describe_data(facts),
        describe_making(facts),
    ]
    return "\n\n".join(parts) + "\n"


def build_header(facts: FineTuningFacts) -> str:
    """Build the YAML header for the Hub, without a license, which people must add."""
    tag = PIPELINE_TAGS.get(facts.task) if facts.is_for_transformers else None
    lines = ["---", f"library_name: {'transformers' if facts.is_for_transformers else 'bertkit'}"]
    if tag is not None:
        lines.append(f"pipeline_tag: {tag}")
    if facts.is_from_hub:  # only such a name means something to the Hub
        lines.append(f"base_model: {quote(facts.parent)}")
    lines += ["tags:", "- bertkit", "metrics:", f"- {quote(facts.judgment.task.metric)}"]
    metrics = {
        name: value
        for name, value in facts.judgment.evaluation.metrics.items()
        if math.isfinite(value)
    }
    if metrics and facts.task in PIPELINE_TAGS:
        lines += [
            "model-index:",
            f"- name: {quote(facts.name)}",
            "  results:",
            "  - task:",
            f"      type: {PIPELINE_TAGS[facts.task]}",
            "    dataset:",
            f"      name: {quote(facts.counts['dev'].name)}",
            f"      type: {quote(facts.counts['dev'].name)}",
            "    metrics:",
        ]
        for name, value in islice(metrics.items(), MAX_METRICS):
            lines += [f"    - type: {quote(name)}", f"      value: {value!r}"]
    return "\n".join([*lines, "---"])


def describe_result(facts: FineTuningFacts) -> str:
    """Build the section with metrics, intervals, the confusion matrix and warnings."""
    evaluation = facts.judgment.evaluation
    rows = []
    for name, value in islice(evaluation.metrics.items(), MAX_METRICS):
        low, high = evaluation.intervals.get(name, (math.nan, math.nan))
        extent = f"{low:.4f}–{high:.4f}" if math.isfinite(low) and math.isfinite(high) else ""
        baseline = facts.judgment.baseline.get(name)
        shown = "" if baseline is None or math.isnan(baseline) else f"{baseline:.4f}"
        rows.append([name, show_number(value), extent, shown])
    number = facts.counts["dev"].num_examples
    parts = [
        f"## Result\n\nOn {number:,} held-out examples, which also selected the best epoch:",
        tabulate(
            ["metric", "value", "95 % interval", "always predicting the most frequent label"], rows
        ),
    ]
    if (num_more := len(evaluation.metrics) - MAX_METRICS) > 0:
        parts.append(f"… and {pluralize(num_more, 'metric')} more, all of them in `metrics.json`.")
    if evaluation.calibration is not None:
        parts.append(f"On these examples: {evaluation.calibration.describe()}.")
    if facts.has_picture:
        parts.append(f"![Confusion matrix]({PICTURE_FILE})")
    return "\n\n".join([*parts, *(f"**{plain(warning)}**" for warning in evaluation.warnings)])


def describe_search(comparison: Comparison) -> str:
    """Build the section on the search that selected this run."""
    rows = [
        [outcome.cell.describe(), str(len(outcome.values)), show_spread(outcome)]
        for outcome in comparison.outcomes
    ]
    made = f"## Search\n\n{comparison.summarize()}. {SELECTION_BIAS}."
    columns = ["choice", "seeds", f"{comparison.metric}, median (lowest–highest)"]
    return "\n\n".join([made, tabulate(columns, rows)])


def describe_data(facts: FineTuningFacts) -> str:
    """Build the section on the data files: counts, checksums and labels."""
    train, dev = facts.counts["train"], facts.counts["dev"]
    rows = [
        ["file", train.name, dev.name],
        ["SHA-256", train.sha256, dev.sha256],
        *(
            [words, *(f"{number:,}" for number in numbers)]
            for words, *numbers in count_rows(facts.counts)
        ),
    ]
    parts = ["## Data", tabulate(["", "training", "held-out"], rows)]
    labels = list({**train.labels, **dev.labels})
    if labels:
        rows = [
            [label, f"{train.labels.get(label, 0):,}", f"{dev.labels.get(label, 0):,}"]
            for label in labels[:MAX_LABELS]
        ]
        parts.append(tabulate(["label", "training", "held-out"], rows))
    if len(labels) > MAX_LABELS:
        parts.append(
            f"… and {pluralize(len(labels) - MAX_LABELS, 'label')} more, all of them in"
            " `config.json`."
        )
    return "\n\n".join(parts)


def describe_making(facts: FineTuningFacts) -> str:
    """Build the section on training: steps, the parent's files and the settings."""
    source, ending = facts.record.source, " and ended early" if facts.has_ended_early else ""
    rows = [[name, sha256] for name, sha256 in source.get("sha256", {}).items()]
    if source.get("commit"):
        rows.append(["commit", source["commit"]])
    made = (
        f"## How it was made\n\nIt trained for {pluralize(facts.num_steps, 'step')}{ending};"
        " this is the model after epoch"
        f" {facts.best_epoch:.4g}.{LEFT_TO_RIGHT * facts.pools_last} It was made"
        f" from these files of {plain(facts.parent)}:"
    )
    settings = [list(item) for item in facts.settings.items()]
    tables = [tabulate(["file", "SHA-256"], rows), tabulate(["setting", "value"], settings)]
    return "\n\n".join([made, *tables])


def tabulate(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Build a Markdown table."""
    lines = [
        list(columns),
        ["---"] * len(columns),
        *([plain(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def show_number(value: float) -> str:
    """Format a number, or "not defined"."""
    return f"{value:.4f}" if math.isfinite(value) else "not defined"


def plain(text: str) -> str:
    """Escape a text for Markdown and HTML, in one line."""
    text = show(text, MAX_NAME_COLUMNS)
    text = "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quote(text: str) -> str:
    """Quote a text for YAML."""
    return json.dumps(make_legible(text), ensure_ascii=False)
