"""The task regress: C, then a linear layer with one output, for a text or a pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_number
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.columns import find_column, take_number
from bertkit.tasks.evaluation import Statistic, TaskScoring
from bertkit.tasks.labeled_table import find_columns
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.metrics.correlation import pearson, spearman
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.task import Task, TaskPrediction, choose_activation
from bertkit.tasks.texts import TextExample, Texts, build_text_parser, encode_texts, learn_pairs
from bertkit.tokenization.tokenizer import Tokenizer

FAR_MEAN, SMALL_SPREAD, LARGE_SPREAD = 20.0, 0.05, 20.0  # STS-B: 0 to 5, mean 2.7, std 1.5


@dataclass(frozen=True, slots=True)
class RegressExample(TextExample):
    """A text or pair, with an optional target number."""

    texts: Texts
    number: float | None = None  # the target; None if unknown
    place: str = ""  # file and line, for messages

    @classmethod
    def build_parser(
        cls, settings: RegressSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "RegressExample"]:
        """Build a function that reads text, pair and number from a record."""
        find_columns(settings, table, needs_answer=needs_answer)
        parse_texts = build_text_parser(settings, table)
        column, decimal = None, table.settings.decimal
        if needs_answer:
            column = find_column(
                table, "label", settings.label_column, settings.usual_columns["label"]
            )

        def parse(record: Record) -> RegressExample:
            number = None if column is None else take_number(record, column, decimal)
            return RegressExample(parse_texts(record), number, record.place)

        return parse


def list_warnings(examples: Sequence[RegressExample]) -> list[str]:
    """Report the range of the numbers, and warn if their scale is hard to learn."""
    numbers = np.array([example.number for example in examples], dtype=np.float64)
    mean, spread = float(numbers.mean()), float(numbers.std())
    extent = f"numbers from {numbers.min():g} to {numbers.max():g}"
    lines = [f"{extent}, mean {format_number(mean)}, standard deviation {format_number(spread)}"]
    if abs(mean) > FAR_MEAN or not SMALL_SPREAD <= spread <= LARGE_SPREAD:
        lines.append(
            "numbers of this scale are learned slowly or not at all, because the head starts near"
            " 0; scale them so that most are between -5 and 5"
        )
    if any(example.texts.pair is not None for example in examples):
        lines.append("they are pairs of texts")
    return lines


SAME_SHARE = 0.01  # with a lower std, relative to the truth, predictions count as constant

Numbers = npt.NDArray[np.float64]
SCORES: dict[str, Callable[[Numbers, Numbers, Numbers | None], Numbers]] = {
    "pearson": pearson,
    "spearman": spearman,
    "mean_squared_error": lambda truth, guess, counts: weighted_mean((truth - guess) ** 2, counts),
    "mean_absolute_error": lambda truth, guess, counts: weighted_mean(abs(truth - guess), counts),
}


@dataclass(frozen=True)
class Regression(TaskPrediction):
    """The predicted number, in the unit of the training examples."""

    value: float

    def describe(self) -> str:
        """Return the number."""
        return format_number(self.value)


class RegressScoring(TaskScoring[RegressExample, Regression]):
    """Correlations, NaN if all true or all predicted numbers are equal, and errors."""

    @cached_property
    def truth(self) -> Numbers:
        """The true numbers."""
        return np.array([example.number for example in self.examples], dtype=np.float64)

    @cached_property
    def guess(self) -> Numbers:
        """The predicted numbers."""
        return np.array([found.value for found in self.predictions], dtype=np.float64)

    @property
    def metrics(self) -> dict[str, float]:
        """Correlations and errors."""
        return {name: float(score(self.truth, self.guess, None)) for name, score in SCORES.items()}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The same, as functions of weights."""
        return {name: partial(score, self.truth, self.guess) for name, score in SCORES.items()}

    @property
    def errors(self) -> Numbers:
        """The absolute errors."""
        return np.abs(self.guess - self.truth)

    def contrast(self, number: int) -> tuple[str, str]:
        """Return both numbers."""
        return f"{self.examples[number].number:.6g}", format_number(self.guess[number])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if all predictions are alike."""
        if self.guess.std() >= SAME_SHARE * self.truth.std():
            return ()
        return (f"every prediction is about {format_number(float(self.guess.mean()))}",)


@dataclass(frozen=True)
class Regress(Task[RegressExample, Regression]):
    """Regression on texts or pairs of texts."""

    settings: RegressSettings

    name: ClassVar = "regress"
    example_kind: ClassVar = RegressExample
    architecture: ClassVar = "BertForSequenceClassification"
    loss_home: ClassVar = "bertkit.tasks.regress.loss:score_numbers"
    config_changes: ClassVar = {
        "num_labels": 1,
        "problem_type": "regression",
        **choose_activation("identity"),
    }

    list_warnings = staticmethod(list_warnings)
    score = RegressScoring

    @classmethod
    def from_examples(cls, settings: RegressSettings, examples: Sequence[RegressExample]) -> Self:
        """Build the task, after checking that numbers differ; set `pairs` if texts are pairs."""
        numbers = {example.number for example in examples}
        if len(numbers) < 2:
            raise InputError(
                f"all examples have the number {next(iter(numbers))}; nothing can be learned"
                if numbers
                else "there are no examples"
            )
        return cls(learn_pairs(settings, (example.texts for example in examples)))

    @classmethod
    def from_config(
        cls, settings: RegressSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task, after checking that the model has one output."""
        if config.num_labels != 1:
            raise CheckpointError(
                f"a regression has 1 label, the number, not {config.num_labels}; is this a"
                " classifier?"
            )
        return cls(settings, numbers=numbers)

    def encode(self, examples: Sequence[RegressExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; long texts are cut or windowed."""
        readings = encode_texts([each.texts for each in examples], self.settings, tokenizer)
        return [
            reading
            if example.number is None
            else replace(reading, labels=np.array([example.number], dtype=np.float32))
            for example, reading in zip(examples, readings, strict=True)
        ]

    def decode(self, example: RegressExample, encoded: Encoded, logits: Logits) -> Regression:
        """Return the number, averaged over windows."""
        del example, encoded
        return Regression(float(logits.mean(dtype=np.float64)))
