"""The task regress: C, then a linear layer with one output, for a text or a pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.reports.notebook import Tabular
from bertkit.tasks.batch import Encoded, TaskBatch
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.long_texts import encode_texts, pool_windows
from bertkit.tasks.regress import examples as records
from bertkit.tasks.regress import scoring
from bertkit.tasks.regress.examples import RegressExample
from bertkit.tasks.regress.settings import RegressSettings
from bertkit.tasks.settings import PoolingName
from bertkit.tasks.task import Task
from bertkit.tasks.texts import learn_pairs, read_texts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores


@dataclass(frozen=True)
class Regression(Tabular):
    """The predicted number, in the unit of the training examples."""

    value: float


@dataclass(frozen=True)
class Regress(Task[RegressExample, Regression]):
    """Regression on texts or pairs of texts."""

    name: ClassVar = "regress"
    settings_kind: ClassVar = RegressSettings
    model_kind: ClassVar = BertForSequenceClassification
    is_pooled: ClassVar = True
    row: ClassVar[Literal["sequence", "token"]] = "sequence"
    head_output: ClassVar = "number"

    @property
    def pooling(self) -> PoolingName | None:
        """As in `Task`."""
        pooling: PoolingName | None = self.settings.pooling
        return pooling

    @property
    def metric(self) -> str:
        """Pearson's correlation."""
        return "pearson"

    @classmethod
    def build_parser(
        cls, settings: RegressSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], RegressExample]:
        """Build a function that reads text, pair and number from a record."""
        return records.build_parser(settings, table, needs_answer=needs_answer)

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

    @property
    def config_changes(self) -> dict[str, Any]:
        """One output, trained as a regression."""
        return {"num_labels": 1, "problem_type": "regression"}

    def make_example(self, value: Any, place: str) -> RegressExample:
        """Build an example from a text, or a tuple of two."""
        return RegressExample(read_texts(value, place, self.settings), place=place)

    def num_chars(self, example: RegressExample) -> int:
        """Return the number of characters of text and pair."""
        return example.texts.num_chars

    def list_warnings(self, examples: Sequence[RegressExample]) -> list[str]:
        """Report the range of the numbers, and warn if their scale is hard to learn."""
        return records.list_warnings(examples)

    def encode(self, examples: Sequence[RegressExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; long texts are cut or windowed."""
        readings = encode_texts([each.texts for each in examples], self.settings, tokenizer)
        return [
            Encoded(
                reading.sequences,
                None if example.number is None else np.array([example.number], dtype=np.float32),
                reading.is_cut,
            )
            for example, reading in zip(examples, readings, strict=True)
        ]

    def loss(self, logits: Float[Tensor, "sequences 1"], batch: TaskBatch) -> Scores:
        """Compute the squared error."""
        values = pool_windows(logits, batch)[:, 0]
        truth = batch.labels.to(values.dtype)
        return Scores({"task": F.mse_loss(values, truth, reduction="sum")}, {})

    def decode(self, example: RegressExample, encoded: Encoded, logits: Logits) -> Regression:
        """Return the number, averaged over windows."""
        del example, encoded
        return Regression(float(logits.mean(dtype=np.float64)))

    def measure(
        self, examples: Sequence[RegressExample], predictions: Sequence[Regression]
    ) -> dict[str, float]:
        """Compute Pearson's and Spearman's correlation, squared and absolute error."""
        return scoring.measure(examples, [found.value for found in predictions])

    def evaluate(
        self, examples: Sequence[RegressExample], predictions: Sequence[Regression]
    ) -> Evaluation:
        """Compute the same with intervals, and list the predictions with the largest errors."""
        return scoring.evaluate(examples, [found.value for found in predictions])

    def show(self, example: RegressExample) -> str:
        """Return the text or the pair."""
        return example.texts.show()

    def describe(self, prediction: Regression) -> str:
        """Return the number."""
        return f"{prediction.value:.4f}"

    def to_json(self, prediction: Regression) -> dict[str, Any]:
        """Return the number."""
        return asdict(prediction)
