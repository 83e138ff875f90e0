"""Base class of tasks: records to examples, to token ids, to a loss, to predictions.

A task is a folder of `tasks/` with a subclass of `Task`, and an entry in `TASKS`. Commands,
predictors and recipes work with every task through these two.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.reports.notebook import Tabular
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits, TaskBatch
from bertkit.tasks.metrics.calibration import CalibrationError, measure_calibration
from bertkit.tasks.settings import PoolingName
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

MAX_MISTAKES = 100
MISTAKE_CHARS = 5000  # shown of a mistake's text
CALIBRATION = "calibration_error"  # key in `metrics`


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction, or one with a large error."""

    place: str  # file and line of the example
    text: str
    expected: str
    predicted: str
    badness: float  # size of the error; larger is worse
    confidence: float | None = None  # the model's probability of the prediction


def rank_mistakes(badness: npt.NDArray[Any]) -> list[int]:
    """Return the indexes of the values above 0, at most `MAX_MISTAKES`, the largest first."""
    worst = np.argsort(-badness, kind="stable")[:MAX_MISTAKES]
    numbers: list[int] = worst[badness[worst] > 0].tolist()
    return numbers


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a set of predictions."""

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # of the bootstrap
    labels: tuple[str, ...] = ()  # of the confusion matrix; empty if there is none
    confusion: dict[tuple[int, int], int] | None = None  # (true, predicted) label ids → count
    confidences: npt.NDArray[np.float64] | None = None  # of each prediction, from 0 to 1
    is_right: npt.NDArray[np.bool_] | None = None
    calibration: CalibrationError | None = None
    mistakes: tuple[Mistake, ...] = ()  # the worst first
    warnings: tuple[str, ...] = ()


def calibrate(evaluation: Evaluation) -> Evaluation:
    """Add the calibration error, if the evaluation has confidences."""
    confidences, is_right = evaluation.confidences, evaluation.is_right
    if confidences is None or is_right is None or not len(confidences):
        return evaluation
    return replace(evaluation, calibration=measure_calibration(confidences, is_right))


def tell_calibration(evaluation: Evaluation) -> Evaluation:
    """Add the calibration error, to the metrics as well."""
    evaluation = calibrate(evaluation)
    found = evaluation.calibration
    if found is None:
        return evaluation
    intervals = dict(evaluation.intervals)
    if found.low is not None and found.high is not None:
        intervals[CALIBRATION] = (found.low, found.high)
    metrics = {**evaluation.metrics, CALIBRATION: found.value}
    return replace(evaluation, metrics=metrics, intervals=intervals)


def score_tokens(logits: Float[Tensor, "tokens labels"], batch: TaskBatch) -> Scores:
    """Compute the cross-entropy over the tokens that have a label."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    loss = F.cross_entropy(scores, batch.labels, reduction="sum", ignore_index=IGNORED_LABEL)
    hits = (scores.detach().argmax(dim=-1) == batch.labels).sum()
    return Scores({"task": loss}, {"task": hits})


class TaskExample(ABC):
    """What a task reads of a row, or of a caller's input; subclasses are frozen dataclasses."""

    __slots__ = ()
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
    @abstractmethod
    def from_value(cls, value: Any, place: str, settings: Any) -> Self:
        """Build an example without an answer from a caller's input: a text, a tuple, a mapping.

        The message of the InputError for another type begins with `place`.
        """

    @property
    @abstractmethod
    def num_chars(self) -> int:
        """The approximate size in characters, to bound a window's size."""

    @property
    def shown(self) -> str:
        """The input as a text; empty if the prediction shows it already."""
        return ""

    @property
    def identity(self) -> str:
        """What official scorers know it by."""
        return self.place

    @property
    def group(self) -> str | None:
        """What examples that are held out together share, such as a context; or None."""
        return None

    @property
    def label_names(self) -> Sequence[str]:
        """Its labels as they are written, known or not; none if labels have no names."""
        return ()

    @property
    def stratum(self) -> str | None:
        """What is held out in proportion, such as the label; None if nothing is."""
        return None


class TaskPrediction(Tabular, ABC):
    """What a model says of an example; subclasses are frozen dataclasses."""

    @abstractmethod
    def describe(self) -> str:
        """Return it as readable text, one line or a few."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; by default the fields of its dataclass."""
        return asdict(cast("Any", self))

    def to_row(self) -> dict[str, Any]:
        """Return it as the columns of a table; by default those of `to_json`."""
        return self.to_json()


Example = TypeVar("Example", bound=TaskExample)
Prediction = TypeVar("Prediction", bound=TaskPrediction)

TEMPERATURE = "temperature"  # key in a task's `numbers`


@dataclass(frozen=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task, with the settings, labels and fitted numbers of one model."""

    settings: Any
    labels: tuple[str, ...] = ()  # by id; empty if the task has none
    # fitted on held-out data after training, such as a temperature
    numbers: Mapping[str, float] = field(default_factory=dict)

    name: ClassVar[str]  # its key in TASKS
    example_kind: ClassVar[type[TaskExample]]
    model_kind: ClassVar[type[FineTunedBert]]
    row: ClassVar[Literal["sequence", "token"]]  # whether each sequence or token has logits
    sequence: ClassVar[Literal["window", "choice"]] = "window"  # kind of an example's sequences
    # What the head's logits mean, for `interpret`; None if one text alone has no prediction.
    head_output: ClassVar[Literal["labels", "tags", "span", "number"] | None]
    is_pooled: ClassVar[bool] = False  # whether the head may read pooled tokens instead of [CLS]
    needs_both_ways: ClassVar[bool] = False  # needs bidirectional attention
    scorer_files: ClassVar[tuple[str, ...]] = ()  # file names `prediction_files` may return

    @property
    def temperature(self) -> float:
        """Temperature that logits are divided by before the softmax; 1 if none was fitted."""
        return self.numbers.get(TEMPERATURE, 1.0)

    @property
    def pooling(self) -> PoolingName | None:
        """How tokens are pooled for the head; None where that isn't set."""
        pooling: PoolingName | None = self.settings.pooling if self.is_pooled else None
        return pooling

    @property
    @abstractmethod
    def metric(self) -> str:
        """Name of the metric that selects the best epoch; higher is better."""

    @classmethod
    @abstractmethod
    def from_examples(cls, settings: Any, examples: Sequence[Example]) -> Self:
        """Build the task for training examples; InputError if nothing can be learned from them."""

    @classmethod
    @abstractmethod
    def from_config(cls, settings: Any, config: BertConfig, numbers: Mapping[str, float]) -> Self:
        """Build the task of a trained model; CheckpointError if it is a model of another task."""

    @property
    def config_changes(self) -> dict[str, Any]:
        """Keys of the model's config that the task sets; by default the labels, if it has any."""
        return {"id2label": dict(enumerate(self.labels))} if self.labels else {}

    def make_example(self, value: Any, place: str) -> Example:
        """Build an example without an answer from a caller's input."""
        kind: Any = self.example_kind
        example: Example = kind.from_value(value, place, self.settings)
        return example

    def check_number(self, num_examples: int) -> None:
        """Raise InputError if predictions for so many examples don't fit in memory."""
        del num_examples

    @abstractmethod
    def encode(self, examples: Sequence[Example], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode examples as token ids, and the answers of those that have one as labels."""

    @abstractmethod
    def loss(self, logits: Float[Tensor, "rows ..."], batch: TaskBatch) -> Scores:
        """Compute the loss of a batch, in float32 whatever the model's precision."""

    @abstractmethod
    def decode(self, example: Example, encoded: Encoded, logits: Logits) -> Prediction:
        """Decode logits to a prediction."""

    def decode_in_brief(self, example: Example, encoded: Encoded, logits: Logits) -> Prediction:
        """Decode for an evaluation, which keeps the predictions of all examples in memory.

        If there are very many labels, only the probabilities of the likeliest are kept.
        """
        return self.decode(example, encoded, logits)

    @abstractmethod
    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """Compute the metrics only, after each epoch; `metric` is among them."""

    @abstractmethod
    def evaluate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> Evaluation:
        """Compute the full evaluation, once at the end."""

    def spell(self, label: str) -> str:
        """Return a label of an example as `labels` would spell it."""
        return label

    def list_warnings(self, examples: Sequence[Example]) -> list[str]:
        """Return task-specific warnings about a set of examples, shown before training.

        Broken rows, empty or cut texts and unseen labels are reported for every task already.
        """
        del examples
        return []

    def prediction_files(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Return the files for official scorers: JSON contents by file name."""
        del examples, predictions
        return {}

    def fit_numbers(
        self, examples: Sequence[Example], encoded: Sequence[Encoded], logits: Sequence[Logits]
    ) -> Self:
        """Return the task with numbers fitted on held-out data after training."""
        del examples, encoded, logits
        return self
