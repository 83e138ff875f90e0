"""The model card of a fine-tuned model."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from bertkit._version import __version__
from bertkit.base.errors import pluralize
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.feature_head import has_modules
from bertkit.models.bert.sentence_bert import SentenceBert
from bertkit.recipes import model_card
from bertkit.recipes.finetune.changes import HeldOutChanges
from bertkit.recipes.finetune.comparison import SeedComparison
from bertkit.recipes.finetune.evaluation import FinalEvaluation
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.model_card import LibraryName, ModelFacts, plain
from bertkit.reports.text import MetricCell, format_metric, make_legible
from bertkit.tasks.sections import draw_confusion
from bertkit.tasks.table import TASKS

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


@dataclass(frozen=True)
class FineTuningFacts(ModelFacts):
    """The data shown in the report and the card."""

    saved: SavedFineTuning
    final: FinalEvaluation
    comparison: SeedComparison | None = None  # with the runs of other seeds
    changes: HeldOutChanges | None = None  # by training, of a task that is compared with its start

    @property
    def task(self) -> str:
        """The task's name."""
        return self.final.task.name

    @property
    def library(self) -> LibraryName:
        """The library, other than bertkit if there is one, that computes the same."""
        is_encoder = self.final.task.model_kind is SentenceBert
        if is_encoder or has_modules(BertConfig.from_dict(self.record.model, self.name)):
            return "sentence-transformers"
        is_own = FEATURE_HEAD in self.record.model or self.pools_last
        return "bertkit" if is_own else "transformers"

    @property
    def pools_last(self) -> bool:
        """Whether the last token represents the text, because it alone sees all of it."""
        is_bidirectional = BertConfig.from_dict(self.record.model, self.name).is_bidirectional
        return not is_bidirectional and self.final.task.scored != "token"

    @property
    def has_picture(self) -> bool:
        """Whether there is a confusion matrix that is small enough to draw."""
        matrix = draw_confusion(self.final.evaluation)
        return matrix is not None and matrix.draw() is not None


PICTURE_FILE = "confusion_matrix.svg"
POOLS_LAST = (
    " A token sees only those before it, so the last token represents a text; transformers would"
    " take the first one."
)
# In sentence-transformers, by whether the model reads pairs.
CALLS = {
    False: "SentenceTransformer(…).encode(texts)",
    True: "CrossEncoder(…).predict(pairs)",
}
GIVES_VECTORS = (
    "In sentence-transformers, `SentenceTransformer(…).encode(texts)` gives its vectors."
)
LOADED_BY: dict[LibraryName, str] = {
    "transformers": "transformers loads it and computes the same scores.",
    "sentence-transformers": "In sentence-transformers, `{call}` gives its scores; transformers has"
    " no such head, and refuses to load it.",
    "bertkit": "Only bertkit computes its scores; transformers refuses to load it.",
}
MAX_LABELS = 100
MAX_METRICS = 100  # there may be one per label


def build_card(facts: FineTuningFacts) -> str:
    """Build the card's text."""
    made = (
        f"{TASKS[facts.task].summary} Fine-tuned from {plain(facts.initial_model)} with bertkit"
        f" {__version__}; `report.html` shows more."
        f" {describe_library(facts)}"
    )
    sections = [describe_metrics(facts)]
    if (comparison := facts.comparison) is not None:
        metric, values = comparison.metric, comparison.values
        rows = [[str(seed), format_metric(metric, value)] for seed, value in values.items()]
        table = model_card.tabulate(["seed", metric], rows)
        sections.append(f"## Seeds\n\n{comparison.describe()}\n\n{table}")
    sections += [describe_data(facts), describe_training(facts)]
    task = describe_evaluation(facts)
    return model_card.build_card(facts, facts.library, task, made, *sections)


def describe_library(facts: FineTuningFacts) -> str:
    """Say which library computes the same as bertkit."""
    task = facts.final.task
    if task.model_kind is SentenceBert:
        return GIVES_VECTORS
    return LOADED_BY[facts.library].format(call=CALLS[task.reads_pairs])


def describe_evaluation(
    facts: FineTuningFacts,
) -> "dict[str, str | list[str] | list[EvalResult] | None]":
    """Return the header's fields on the task and its metrics."""
    from huggingface_hub import EvalResult

    tag = TASKS[facts.task].pipeline_tag
    evaluation, dataset = facts.final.evaluation, make_legible(facts.saved.dev.name)
    metrics = {name: value for name, value in evaluation.metrics.items() if math.isfinite(value)}
    results = [
        EvalResult(
            task_type=tag,
            dataset_type=dataset,
            dataset_name=dataset,
            metric_type=make_legible(name),
            metric_value=value,
        )
        for name, value in islice(metrics.items(), MAX_METRICS)
        if tag is not None
    ]
    return {
        "pipeline_tag": None if facts.library == "bertkit" else tag,
        "metrics": [make_legible(facts.final.task.metric)],
        "model_name": make_legible(facts.name) if results else None,
        "eval_results": results or None,
    }


def describe_metrics(facts: FineTuningFacts) -> str:
    """Build the section with metrics, intervals, the confusion matrix and warnings."""
    evaluation = facts.final.evaluation
    rows = []
    for name, value in islice(evaluation.metrics.items(), MAX_METRICS):
        interval = MetricCell.of(name, value, evaluation.intervals.get(name)).show_interval()
        baseline = facts.final.baseline.get(name, math.nan)
        shown = "" if math.isnan(baseline) else format_metric(name, baseline)
        row = [name, format_metric(name, value), interval, shown]
        rows.append(row if facts.final.baseline else row[:-1])
    selected = ", which also selected the best epoch" if facts.saved.num_steps else ""
    columns = ["metric", "value", "95 % interval", "always predicting the most frequent label"]
    parts = [model_card.tabulate(columns[: len(rows[0])], rows)]
    if (num_more := len(evaluation.metrics) - MAX_METRICS) > 0:
        parts.append(f"… and {pluralize(num_more, 'metric')} more, all of them in `metrics.json`.")
    if facts.saved.verdict is not None:
        verdict = facts.saved.verdict
        advice = "\n".join(f"- {plain(line)}" for line in verdict.list_advice())
        parts += [
            f"**{plain(verdict.describe())}**",
            verdict.describe_method(),
            *([advice] if advice else []),
        ]
    if facts.saved.cross_validated is not None:
        parts.append(f"{facts.saved.cross_validated.describe()}.")
    if evaluation.calibration is not None:
        parts.append(f"On these examples: {evaluation.calibration.describe()}.")
    if facts.has_picture:
        parts.append(f"![Confusion matrix]({PICTURE_FILE})")
    held_out = f"{facts.saved.dev.num_examples:,} held-out examples{selected}"
    return model_card.describe_result(held_out, *parts, warnings=evaluation.warnings)


def describe_data(facts: FineTuningFacts) -> str:
    """Build the section on the data files: counts, checksums and labels."""
    train, dev = facts.saved.train, facts.saved.dev
    parts = [model_card.describe_counts(train, dev)]
    labels = list({**train.labels, **dev.labels})
    if labels:
        rows = [
            [label, f"{train.labels.get(label, 0):,}", f"{dev.labels.get(label, 0):,}"]
            for label in labels[:MAX_LABELS]
        ]
        parts.append(model_card.tabulate(["label", "training", "held-out"], rows))
    if (num_more := len(labels) - MAX_LABELS) > 0:
        parts.append(f"… and {pluralize(num_more, 'label')} more, all of them in `config.json`.")
    return "\n\n".join(parts)


def describe_training(facts: FineTuningFacts) -> str:
    """Build the section on training: steps, the initial model's files and the settings."""
    saved = facts.saved
    ending = " and ended early" if saved.has_ended_early else ""
    if saved.num_steps == 0:
        how = "The last layer of the head was solved on the frozen encoder, without training steps."
    else:
        best = f"after epoch {saved.best_epoch:.4g}" if saved.best_step else "before the first step"
        how = (
            f"The model was trained for {pluralize(saved.num_steps, 'step')}{ending}; this is the"
            f" model {best}."
        )
    if lora := facts.record.settings.get("lora"):
        how += (
            f" Only updates of rank {lora} of the encoder's matrices, and the head, were trained"
            " (LoRA); they are merged, and stand alone in `adapter/`."
        )
    origin = f" It was initialized from these files of {plain(facts.initial_model)}:"
    made = f"{how}{POOLS_LAST * facts.pools_last}{origin}"
    return model_card.describe_training(facts, made)
