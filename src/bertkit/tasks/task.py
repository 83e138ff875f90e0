"""What a task is: from a record to an example, to token ids, to a loss, to an answer.

A task is a room of `tasks/` with a class of this kind, and one line in `TASKS`. Its commands, its
predictor and its place in every recipe follow from those two.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from jaxtyping import Float
from torch import Tensor

from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.tasks.batch import Encoded, TaskBatch
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.settings import TaskSettings
from bertkit.tokenization.tokenizer import Tokenizer

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")

TEMPERATURE = "temperature"  # among a task's numbers


@dataclass(frozen=True)
class TaskScores:
    """Sums over a batch's labels, for the loop.

    Attributes:
        losses: under "task".
        hits: how often the likeliest answer was right, under "task"; empty where none is.
    """

    losses: dict[str, Tensor]
    hits: dict[str, Tensor]


@dataclass(frozen=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task with all that belongs to one model of it.

    Attributes:
        settings: what was chosen.
        labels: names of what is told apart, by id; empty where the task has no labels.
        numbers: what was found on held-out data after training, such as a temperature, by name.
    """

    settings: Any
    labels: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    name: ClassVar[str]  # its key in TASKS
    settings_kind: ClassVar[type[TaskSettings]]
    model_kind: ClassVar[type[FineTunedBert]]
    row: ClassVar[Literal["sequence", "token"]]  # what has a row of logits
    sequence: ClassVar[Literal["window", "choice"]] = "window"  # of which an example may have many
    needs_both_ways: ClassVar[bool] = False  # a token stands for what comes behind it
    scorer_files: ClassVar[tuple[str, ...]] = ()  # names that `prediction_files` may give

    @property
    def temperature(self) -> float:
        """What scores are divided by before they become probabilities; 1 where none was found."""
        return self.numbers.get(TEMPERATURE, 1.0)

    @property
    @abstractmethod
    def metric(self) -> str:
        """Name of the metric by which the best epoch is chosen; higher is better."""

    @classmethod
    @abstractmethod
    def build_parser(
        cls, settings: Any, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], Example]:
        """How a record of a table becomes an example.

        The parser raises BrokenRowError where a record can't be one.

        Args:
            settings: the task's.
            table: the file; its columns.
            needs_answer: without it nothing is asked of the columns of the answer, nor read from
                them: the answers are to be found. A file with a text a line has the column `text`.

        Raises:
            InputError: columns are missing.
        """

    @classmethod
    @abstractmethod
    def from_examples(cls, settings: Any, examples: Sequence[Example]) -> Self:
        """The task of training examples: their labels.

        Raises:
            InputError: nothing can be learned from them, such as where there is one label only.
        """

    @classmethod
    @abstractmethod
    def from_config(cls, settings: Any, config: BertConfig, numbers: Mapping[str, float]) -> Self:
        """The task of a model that was trained.

        Raises:
            CheckpointError: the config isn't that of a model of this task.
        """

    @property
    @abstractmethod
    def config_changes(self) -> dict[str, Any]:
        """Keys of the model's config that follow from the task."""

    def check_number(self, num_examples: int) -> None:
        """See that the answers to so many examples fit into memory.

        Raises:
            InputError: they don't.
        """
        del num_examples

    @classmethod
    def group(cls, example: Example) -> str | None:
        """What an example shares with others, such as the text that several questions are about.

        Examples that share it are held out together. None where an example stands alone.
        """
        del example
        return None

    @abstractmethod
    def make_example(self, value: Any, place: str) -> Example:
        """An example without an answer, of what a caller gave: a text, a tuple, a mapping.

        Raises:
            InputError: it is something else; the message begins with the place.
        """

    @abstractmethod
    def num_chars(self, example: Example) -> int:
        """About how much text an example has, so that windows of them stay small."""

    @abstractmethod
    def encode(self, examples: Sequence[Example], tokenizer: Tokenizer) -> list[Encoded]:
        """Token ids of examples, and labels of those that have an answer."""

    @abstractmethod
    def loss(self, logits: Float[Tensor, "rows ..."], batch: TaskBatch) -> TaskScores:
        """The loss of a batch, in float32 whatever the model computes in."""

    @abstractmethod
    def decode(self, example: Example, encoded: Encoded, logits: Logits) -> Prediction:
        """The answer that logits mean."""

    def decode_in_brief(self, example: Example, encoded: Encoded, logits: Logits) -> Prediction:
        """The answer as an evaluation keeps it, which holds those to all its examples in memory.

        Where labels are very many, it has the probabilities of the likeliest alone.
        """
        return self.decode(example, encoded, logits)

    @abstractmethod
    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """Metrics alone, after each epoch; `metric` among them."""

    @abstractmethod
    def evaluate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> Evaluation:
        """Metrics, with what else there is to see, once at the end."""

    def list_labels(self, example: Example) -> Sequence[str]:
        """The labels of an example's answer, known or not; none where labels have no names."""
        del example
        return ()

    def list_warnings(self, examples: Sequence[Example]) -> list[str]:
        """What else was met in a set of examples, in lines for people; it is told before training.

        Broken rows, empty and cut texts and unseen labels are told for every task already.
        """
        del examples
        return []

    def prediction_files(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """What official scorers read: contents of JSON files, by file name."""
        del examples, predictions
        return {}

    def fit_numbers(
        self, examples: Sequence[Example], encoded: Sequence[Encoded], logits: Sequence[Logits]
    ) -> Self:
        """The same task with numbers that are found on held-out data after training."""
        del examples, encoded, logits
        return self

    def show(self, example: Example) -> str:
        """What was read, in a line for people; nothing where `describe` says it already."""
        del example
        return ""

    @abstractmethod
    def describe(self, prediction: Prediction) -> str:
        """An answer in a line or a few, for people."""

    @abstractmethod
    def to_json(self, prediction: Prediction) -> dict[str, Any]:
        """An answer for programs."""
