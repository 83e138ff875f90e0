"""The task choose: one logit per choice from its C, a softmax over an example's choices."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.fine_tuning import BertForMultipleChoice
from bertkit.reports.text import format_percent
from bertkit.tasks.batch import Encoded, Logits, TaskBatch
from bertkit.tasks.choose import MAX_CHOICES, MIN_CHOICES, ChooseSettings
from bertkit.tasks.choose.answers import GivenAnswer, choose_meaning, read_answer
from bertkit.tasks.columns import SHOWN_CHARS, find_column, take_text, take_value
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Statistic
from bertkit.tasks.metrics.calibration import fit_temperature
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import TEMPERATURE, Task, TaskExample, TaskPrediction
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

USUAL_CONTEXT = ("context", "sent1", "premise", "text")
USUAL_QUESTION = ("question", "sent2")
USUAL_CHOICES = ("choices", "endings", "options")
USUAL_BEGINNINGS = ("ending", "choice", "option")


@dataclass(frozen=True, slots=True)
class ChooseExample(TaskExample):
    """A context and its choices."""

    context: str
    choices: tuple[str, ...]  # 2 to 64
    question: str = ""  # text before each choice in the second segment; may be empty
    label: int | None = None  # index of the correct choice, from 0; None if unknown
    place: str = ""  # file and line, for messages
    given: GivenAnswer | None = None  # until `settle` has decided what it means

    def join(self, choice: str) -> str:
        """Join the question and a choice, which follow the context as the second segment."""
        return f"{self.question} {choice}" if self.question else choice

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The context, --question if it has one, and each --choice."""
        question = [("--question", self.question)] if self.question else []
        return [("", self.context), *question, *(("--choice", each) for each in self.choices)]

    @property
    def num_chars(self) -> int:
        """Number of characters of all sequences."""
        return sum(len(self.context) + len(self.join(choice)) for choice in self.choices)

    @property
    def shown(self) -> str:
        """Context and question."""
        return f"{self.context} {self.question}".strip()

    @property
    def group(self) -> str | None:
        """The context, which several examples may share."""
        return self.context or None

    @classmethod
    def build_parser(
        cls, settings: ChooseSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "ChooseExample"]:
        """Build a function that reads context, question, choices and label from a record."""
        context = find_column(table, "context", settings.context_column, USUAL_CONTEXT)
        question = _find_question(settings, table)
        take_choices = _find_choices(settings, table)
        label = None
        if needs_answer:
            label = find_column(table, "label", settings.label_column, ("label", "answer"))

        def parse(record: Record) -> ChooseExample:
            choices = take_choices(record)
            return ChooseExample(
                context=take_text(record, context),
                choices=choices,
                question="" if question is None else take_text(record, question),
                place=record.place,
                given=None if label is None else read_answer(record, label, choices),
            )

        return parse

    @classmethod
    def settle(
        cls, examples: list[Self], report: RowReport, settings: Any, known: Sequence[str] = ()
    ) -> list[Self]:
        """Read all answers as positions, or all as texts of choices."""
        del settings, known
        kept = []
        given = [example.given for example in examples if example.given is not None]
        for example, label in zip(examples, choose_meaning(given, report), strict=True):
            if label is not None:
                kept.append(replace(example, label=label, given=None))
        return kept

    @classmethod
    def from_value(cls, value: Any, place: str, settings: ChooseSettings) -> Self:
        """Build an example from (context, choices), or a mapping that may also have a question."""
        del settings
        question: Any = None
        if isinstance(value, Mapping):
            question = value.get("question")
            value = (value.get("context"), value.get("choices"))
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            context, choices = value
            is_list = isinstance(choices, list | tuple) and all(isinstance(t, str) for t in choices)
            if is_list and isinstance(question, str | None):
                if not MIN_CHOICES <= len(choices) <= MAX_CHOICES:
                    raise InputError(f"{place}: {_describe_number(len(choices))}")
                return cls(context, tuple(choices), question or "", place=place)
        raise InputError(
            f"{place}: expected a tuple of context and a list of choices, or a mapping that has"
            f" both and perhaps a question; got {value!r:.80}"
        )


def _find_question(settings: ChooseSettings, table: RecordTable) -> str | None:
    """Find the question's column; None if none was named, and none has a usual name."""
    columns = table.columns or ()
    if settings.question_column is None and not set(USUAL_QUESTION) & set(columns):
        return None
    return find_column(table, "question", settings.question_column, USUAL_QUESTION)


def _find_choices(
    settings: ChooseSettings, table: RecordTable
) -> Callable[[Record], tuple[str, ...]]:
    """Build a function that reads choices from a list, or from numbered columns."""
    columns = table.columns or ()
    wanted = settings.choices_column
    beginnings = USUAL_BEGINNINGS if wanted is None else (wanted,)
    has_list = wanted in columns or (wanted is None and bool(set(USUAL_CHOICES) & set(columns)))
    if not has_list:
        for beginning in beginnings:
            if _list_numbered(beginning, columns):
                return lambda record: _take_numbered(record, beginning)
    column = find_column(table, "choices", wanted, USUAL_CHOICES)
    return lambda record: _check(take_value(record, column), record, column)


def _list_numbered(beginning: str, columns: Sequence[str]) -> list[str]:
    """List columns such as ending0, ending1, in the order of their numbers."""
    pattern = re.compile(rf"{re.escape(beginning)}(\d{{1,3}})", re.ASCII)
    found = [(int(match[1]), name) for name in columns if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _take_numbered(record: Record, beginning: str) -> tuple[str, ...]:
    """Read choices from numbered columns, without empty ones at the end."""
    values = [record.values[name] for name in _list_numbered(beginning, list(record.values))]
    while values and values[-1] in (None, ""):
        values.pop()
    return _check(values, record, beginning)


def _check(values: object, record: Record, column: str) -> tuple[str, ...]:
    """Check the type and the number of choices."""
    if not isinstance(values, list) or not all(isinstance(choice, str) for choice in values):
        raise BrokenRowError(
            f"{record.place} has {values!r:.{SHOWN_CHARS}} in {column} where a list of texts should"
            " be"
        )
    if not MIN_CHOICES <= len(values) <= MAX_CHOICES:
        raise BrokenRowError(f"{record.place}: {_describe_number(len(values))}")
    return tuple(values)


def _describe_number(number: int) -> str:
    return f"there must be from {MIN_CHOICES} to {MAX_CHOICES} choices, not {number}"


@dataclass(frozen=True)
class Choice(TaskPrediction):
    """The predicted choice."""

    index: int  # from 0
    text: str
    probability: float
    probabilities: tuple[float, ...]  # of all choices, in their order

    def describe(self) -> str:
        """Return the choice and its probability."""
        return f"{self.text}\t{format_percent(self.probability)}"


NO_CHOICE = -1e4  # logit that pads examples with fewer choices

ADVICE = "the model has learned nothing; try more epochs, another learning rate or another seed"


class ChooseScoring(ConfidentScoring[ChooseExample, Choice]):
    """The accuracy of predicted choices."""

    calibration = "metric"

    @cached_property
    def is_right(self) -> Flags:
        """Whether each choice is the right one."""
        pairs = zip(self.examples, self.predictions, strict=True)
        return np.array([example.label == choice.index for example, choice in pairs])

    @property
    def metrics(self) -> dict[str, float]:
        """The accuracy."""
        return {"accuracy": float(self.is_right.mean())}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The accuracy of weighted examples."""
        return {"accuracy": partial(weighted_mean, self.is_right)}

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the right choice and the predicted one."""
        example = self.examples[number]
        assert example.label is not None, "only examples with a right choice are measured"
        return example.choices[example.label], self.predictions[number].text

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if the model always predicts the same choice, or else is no better than chance."""
        indexes = {choice.index for choice in self.predictions}
        if len(indexes) == 1:
            return (f"every prediction is choice {next(iter(indexes))}: {ADVICE}",)
        accuracy = float(self.is_right.mean())
        chance = float(np.mean([1.0 / len(example.choices) for example in self.examples]))
        if accuracy > chance:
            return ()
        found, least = format_percent(accuracy), format_percent(chance)
        return (f"accuracy ({found}) isn't above that of guessing ({least}): {ADVICE}",)


@dataclass(frozen=True)
class Choose(Task[ChooseExample, Choice]):
    """Multiple choice among answers or endings."""

    name: ClassVar = "choose"
    samples: ClassVar = [("a", ("a", "b")), ("a b", ("a b", "b"))]
    example_kind: ClassVar = ChooseExample
    model_kind: ClassVar = BertForMultipleChoice
    metric: ClassVar = "accuracy"

    score = ChooseScoring

    def encode(self, examples: Sequence[ChooseExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] context [SEP] question choice [SEP]`, one sequence per choice."""
        texts = [
            Texts(example.context, example.join(choice))
            for example in examples
            for choice in example.choices
        ]
        settings = TextSettings(max_length=self.settings.max_length)
        readings = iter(encode_texts(texts, settings, tokenizer))
        found = []
        for example in examples:
            own = [next(readings) for _ in example.choices]
            encoded = Encoded(
                tuple(sequence for reading in own for sequence in reading.sequences),
                None if example.label is None else np.array([example.label]),
                any(reading.is_cut for reading in own),
            )
            found.append(encoded)
        return found

    def loss(self, logits: Float[Tensor, " sequences"], batch: TaskBatch) -> Scores:
        """Compute the cross-entropy over each example's choices."""
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
        parts = torch.split(scores, list(batch.num_sequences))
        rows = pad_sequence(list(parts), batch_first=True, padding_value=-torch.inf)
        return Scores(
            {"task": F.cross_entropy(rows, batch.labels, reduction="sum")},
            {"task": (rows.detach().argmax(dim=-1) == batch.labels).sum()},
        )

    def decode(self, example: ChooseExample, encoded: Encoded, logits: Logits) -> Choice:
        """Return the likeliest choice, with the probability of each."""
        del encoded
        scores = logits.astype(np.float64) / self.temperature
        powers = np.exp(scores - scores.max())
        shares = powers / powers.sum()
        best = int(logits.argmax())
        return Choice(best, example.choices[best], float(shares[best]), tuple(shares.tolist()))

    def fit_numbers(
        self,
        examples: Sequence[ChooseExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """Fit the temperature by likelihood, unless all predictions are correct."""
        del encoded
        truth = np.array([example.label for example in examples])
        scores = np.full((len(logits), max(map(len, logits))), NO_CHOICE)
        for row, values in zip(scores, logits, strict=True):
            row[: len(values)] = values - values.max()
        if (scores.argmax(axis=1) == truth).all():
            return self
        return replace(self, numbers={TEMPERATURE: fit_temperature(scores, truth)})
