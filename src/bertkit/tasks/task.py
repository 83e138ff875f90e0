"""Base class of tasks: records to examples, to token ids, to a loss, to predictions.

A task is a folder of `tasks/` with a subclass of `Task`, and an entry in `TASKS`. Commands,
predictors and recipes work with every task through these two.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from bertkit.base.wings import load_object
from bertkit.checkpoints.sentence_modules import ACTIVATIONS
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.config import BertConfig, Scored
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.evaluation import TaskScoring
from bertkit.tasks.explanation import Explanation
from bertkit.tasks.saved import TEMPERATURE
from bertkit.tasks.settings import TaskSettings
from bertkit.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from bertkit.models.bert.fine_tuning import FineTunedBert
    from bertkit.tasks.task_batch import TaskBatch
    from bertkit.training.job import Scores


class TaskExample(ABC):
    """What a task reads of a row, or of a caller's input; subclasses are frozen dataclasses."""

    __slots__ = ()
    samples: ClassVar[Sequence[Any]] = ("a", "a b")  # two inputs of different lengths
    place: str  # file and line, for messages

    @classmethod
    @abstractmethod
    def build_parser(
        cls, settings: Any, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "TaskExample"]:
        """Build a function that reads a record of a table, or raises BrokenRowError.

        Unless answers are needed, their columns are neither required nor read. A file with one text
        per line has the column `text`.
        """

    @classmethod
    def settle(
        cls, examples: list[Self], report: RowReport, settings: Any, known: Sequence[str] = ()
    ) -> list[Self]:
        """Decide what depends on all labeled examples of a file, and return those to use.

        The others, and how the file is read, are added to the report. By default nothing depends
        on it. `known` are the labels of the model or of the training data, if there are some.
        """
        del report, settings, known
        return examples

    @classmethod
    @abstractmethod
    def from_value(cls, value: Any, place: str, settings: Any) -> Self:
        """Build an example without an answer from a caller's input: a text, a tuple, a mapping.

        The message of the InputError for another type begins with `place`.
        """

    @property
    @abstractmethod
    def arguments(self) -> Sequence[tuple[str, str]]:
        """Flags and values that give it to `bertkit <task>`; a word has the flag ""."""

    @property
    @abstractmethod
    def num_chars(self) -> int:
        """The approximate size in characters, to bound a window's size."""

    @property
    def shown(self) -> str:
        """The input as a text; empty if the prediction shows it already."""
        return ""

    @property
    def example_id(self) -> str:
        """The key of its prediction in files for official scorers: its own id, or its place."""
        return self.place

    @property
    def group(self) -> str | None:
        """The text that it shares with other examples, which a split keeps together; or None."""
        return None

    @property
    def label_names(self) -> Sequence[str]:
        """Its labels as they are written, known or not; none if labels have no names."""
        return ()

    @property
    def stratum(self) -> str | None:
        """The class whose share a stratified split keeps, such as its label; or None."""
        return None


@dataclass(frozen=True)
class TaskPrediction(Tabular, ABC):
    """What a model says of an example; subclasses are frozen dataclasses.

    Attributes:
        explanations: which words decided, of each label, entity, answer or number that was
            predicted; none unless they were asked for.
    """

    explanations: tuple[Explanation, ...] = field(
        default=(), kw_only=True, repr=False, compare=False
    )

    @abstractmethod
    def describe(self) -> str:
        """Return it as readable text, one line or a few."""

    def to_json(self) -> Row:
        """Return it as JSON data: the values, and explanations if there are some."""
        explained = [one.to_json() for one in self.explanations]
        return {**self.list_values(), **({"explanations": explained} if explained else {})}

    def to_row(self) -> Row:
        """Return it as the columns of a table: the values, and what decided in a text."""
        return {**self.list_columns(), **self.tell_words()}

    def list_values(self) -> Row:
        """Return what was predicted, as JSON data; by default the fields of its dataclass."""
        values = asdict(replace(self, explanations=()))
        del values["explanations"]
        return values

    def list_columns(self) -> Row:
        """Return what was predicted as the columns of a table; by default `list_values`."""
        return self.list_values()

    def tell_words(self) -> Row:
        """Return the weightiest words of each explanation in a column, if there are some."""
        several = len(self.explanations) > 1
        told = [several * f"{one.target}: " + one.list_words() for one in self.explanations]
        return {"explanation": "; ".join(told)} if told else {}

    def as_row(self) -> Row:
        """Return its row, with the words that decided if there are some."""
        return {**super().as_row(), **self.tell_words()}

    def _repr_html_(self) -> str:
        return super()._repr_html_() + "".join(one._repr_html_() for one in self.explanations)


Example = TypeVar("Example", bound=TaskExample)
Prediction = TypeVar("Prediction", bound=TaskPrediction)


def choose_activation(name: str) -> dict[str, dict[str, str]]:
    """Return the config key by which a CrossEncoder turns logits into scores; see `ACTIVATIONS`.

    Without it, a CrossEncoder applies the sigmoid to a single logit, even to a regression's.
    """
    return {"sentence_transformers": {"activation_fn": ACTIVATIONS[name]}}


@dataclass(frozen=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task, with the settings, labels and fitted numbers of one model."""

    settings: TaskSettings
    labels: tuple[str, ...] = ()  # by id; empty if the task has none
    # fitted on held-out data after training, such as a temperature
    numbers: Mapping[str, float] = field(default_factory=dict)

    # How many predictions an evaluation keeps together; 0 if each is used at once.
    num_kept_together: int = 0
    # encoding and delimiter of the training data, where they differ from the default
    reading: Mapping[str, str] = field(default_factory=dict)

    name: ClassVar[str]  # its key in TASKS
    example_kind: ClassVar[type[TaskExample]]
    architecture: ClassVar[str]  # of its models, as in config.json
    scored: ClassVar[Scored] = "sequence"  # what has a row of logits
    # Its loss, `module:function` of the task, logits `[rows, ...]` and a batch, which only training
    # imports; by default the cross-entropy of the rows that have a label.
    loss_home: ClassVar[str] = "bertkit.tasks.task_batch:score_rows"
    # Whether several sequences of an example are the windows of a long text.
    has_windows: ClassVar[bool] = True
    # Whether its head is a linear layer that can be solved on a frozen encoder.
    has_solvable_head: ClassVar[bool] = True
    # Whether a pre-trained model does the task before the first step.
    has_start: ClassVar[bool] = False
    # Files for official scorers, by name: the attribute of predictions that each has.
    scorer_files: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @property
    def temperature(self) -> float:
        """Temperature that logits are divided by before the softmax; 1 if none was fitted."""
        return self.numbers.get(TEMPERATURE, 1.0)

    @property
    def reads_pairs(self) -> bool:
        """Whether every example is a pair of texts."""
        return bool(getattr(self.settings, "pairs", False))

    @property
    def samples(self) -> Sequence[Any]:
        """Two inputs of different lengths."""
        return [("a", "b"), ("a b", "b")] if self.reads_pairs else self.example_kind.samples

    @property
    def model_kind(self) -> "type[FineTunedBert]":
        """The class of its models, which needs torch."""
        kind: type[FineTunedBert] = load_object(ARCHITECTURES[self.architecture].address)
        return kind

    @property
    def metric(self) -> str:
        """Name of the metric that selects the best epoch; higher is better."""
        return self.settings.choose_metric(self.labels)

    @classmethod
    def from_examples(cls, settings: Any, examples: Sequence[Example]) -> Self:
        """Build the task for training examples; InputError if nothing can be learned from them."""
        del examples
        return cls(settings)

    @classmethod
    def from_config(cls, settings: Any, config: BertConfig, numbers: Mapping[str, float]) -> Self:
        """Build the task of a trained model; CheckpointError if it is a model of another task."""
        del config
        return cls(settings, numbers=numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """Keys of the model's config that the task sets; by default the labels, if it has any."""
        return {"id2label": dict(enumerate(self.labels))} if self.labels else {}

    def make_example(self, value: Any, place: str) -> Example:
        """Build an example without an answer from a caller's input."""
        example: Example
        example = self.example_kind.from_value(value, place, self.settings)  # type: ignore[assignment]
        return example

    def for_evaluation(self, num_examples: int) -> Self:
        """Return the task whose predictions for so many examples fit in memory together.

        It is an InputError if they can't. If there are very many labels, predictions of a
        classifier then have only the likeliest probabilities.
        """
        return replace(self, num_kept_together=num_examples)

    @abstractmethod
    def encode(self, examples: Sequence[Example], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode examples as token ids, and the answers of those that have one as labels."""

    def loss(self, logits: "Float[Tensor, 'rows ...']", batch: "TaskBatch") -> "Scores":
        """Compute the loss of a batch, in float32 whatever the model's precision."""
        scores: Scores = load_object(self.loss_home)(self, logits, batch)
        return scores

    @abstractmethod
    def decode(self, example: Example, encoded: Encoded, logits: Logits) -> Prediction:
        """Decode logits to a prediction."""

    @abstractmethod
    def score(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> TaskScoring[Example, Prediction]:
        """Compare predictions with the answers of their examples."""

    def list_warnings(self, examples: Sequence[Example]) -> list[str]:
        """Return task-specific warnings about a set of examples, shown before training.

        Broken rows, empty or cut texts and unseen labels are reported for every task already.
        """
        del examples
        return []

    def fit_numbers(
        self, examples: Sequence[Example], encoded: Sequence[Encoded], logits: Sequence[Logits]
    ) -> Self:
        """Return the task with numbers fitted on held-out data after training."""
        del examples, encoded, logits
        return self


AnyTask: TypeAlias = Task[Any, Any]
