"""C, then a linear layer: one label for a text or a pair."""

from collections import Counter
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
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, TaskBatch, TokenSequence
from bertkit.tasks.classify.settings import ClassifySettings
from bertkit.tasks.columns import find_column, take_label, take_text
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.task import Task, TaskScores
from bertkit.tokenization.tokenizer import Tokenizer

USUAL_TEXT = ("text", "sentence", "premise", "sentence1", "question1")
USUAL_LABEL = ("label", "labels")


@dataclass(frozen=True)
class ClassifyExample:
    """A text or a pair, and perhaps its label.

    Attributes:
        text: the first text.
        pair: the second.
        label: None where it is to be found.
        place: file and line, for messages.
    """

    text: str
    pair: str | None = None
    label: str | None = None
    place: str = ""


@dataclass(frozen=True)
class Classification:
    """The label of a text.

    Attributes:
        label: the likeliest.
        probability: its probability, from 0 to 1.
        probabilities: of each label.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Classify(Task[ClassifyExample, Classification]):
    """Labels texts or pairs of texts."""

    name: ClassVar = "classify"
    settings_kind: ClassVar = ClassifySettings
    model_kind: ClassVar = BertForSequenceClassification
    row: ClassVar[Literal["sequence", "token"]] = "sequence"

    @property
    def metric(self) -> str:
        """Accuracy."""
        return "accuracy"

    @classmethod
    def build_parser(
        cls, settings: ClassifySettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], ClassifyExample]:
        """Look for text, pair and label in their columns."""
        text = find_column(table, "text", settings.text_column, USUAL_TEXT)
        label = None
        if needs_answer:
            label = find_column(table, "label", settings.label_column, USUAL_LABEL)
        has_pair = settings.pair_column is not None or "pair" in table.roles
        pair = find_column(table, "pair", settings.pair_column) if has_pair else None

        def parse(record: Record) -> ClassifyExample:
            return ClassifyExample(
                text=take_text(record, text),
                pair=None if pair is None else take_text(record, pair),
                label=None if label is None else take_label(record, label),
                place=record.place,
            )

        return parse

    @classmethod
    def from_examples(cls, settings: ClassifySettings, examples: Sequence[ClassifyExample]) -> Self:
        """The labels of the examples, in the order of their names."""
        labels = sorted({example.label for example in examples if example.label is not None})
        if len(labels) < 2:
            raise InputError(
                f"all examples have the label {labels[0]!r:.40}; at least two labels are needed"
                if labels
                else "no example has a label"
            )
        return cls(settings, tuple(labels))

    @classmethod
    def from_config(
        cls, settings: ClassifySettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """The labels of the config."""
        names = config.id2label or {id_: f"LABEL_{id_}" for id_ in range(config.num_labels)}
        if len(names) < 2:
            raise CheckpointError("a classifier needs at least two labels; is this a regression?")
        return cls(settings, tuple(names[id_] for id_ in range(len(names))), numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """Labels, and that each text has one."""
        return {
            "id2label": dict(enumerate(self.labels)),
            "problem_type": "single_label_classification",
        }

    def make_example(self, value: Any, place: str) -> ClassifyExample:
        """A text, or a tuple of two."""
        if isinstance(value, str):
            return ClassifyExample(value, place=place)
        if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
            return ClassifyExample(*value, place=place)
        raise InputError(f"{place}: expected a text or a tuple of two, got {value!r:.80}")

    def num_chars(self, example: ClassifyExample) -> int:
        """Characters of text and pair."""
        return len(example.text) + len(example.pair or "")

    def list_labels(self, example: ClassifyExample) -> Sequence[str]:
        """Its label."""
        return () if example.label is None else (example.label,)

    def encode(self, examples: Sequence[ClassifyExample], tokenizer: Tokenizer) -> list[Encoded]:
        """`[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`."""
        ids = {label: id_ for id_, label in enumerate(self.labels)}
        found = []
        for example in examples:
            encoding = tokenizer.encode(
                example.text, example.pair, max_length=self.settings.max_length
            )
            labels = None
            if example.label is not None:
                labels = np.array([ids.get(example.label, IGNORED_LABEL)])
            sequence = TokenSequence(encoding.ids, encoding.token_type_ids)
            found.append(Encoded((sequence,), labels))
        return found

    def loss(self, logits: Float[Tensor, "rows labels"], batch: TaskBatch) -> TaskScores:
        """Cross-entropy."""
        return TaskScores(
            {"task": F.cross_entropy(logits.float(), batch.labels, reduction="sum")},
            {"task": (logits.detach().argmax(dim=-1) == batch.labels).sum()},
        )

    def decode(self, example: ClassifyExample, encoded: Encoded, logits: Logits) -> Classification:
        """The likeliest label, and how likely each is."""
        del example, encoded
        shifted = np.exp(logits[0] - logits[0].max())
        values = shifted / shifted.sum()
        best = int(values.argmax())
        return Classification(
            self.labels[best],
            float(values[best]),
            dict(zip(self.labels, values.tolist(), strict=True)),
        )

    def measure(
        self, examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
    ) -> dict[str, float]:
        """Accuracy."""
        pairs = zip(examples, predictions, strict=True)
        hits = sum(example.label == prediction.label for example, prediction in pairs)
        return {"accuracy": hits / len(examples)}

    def evaluate(
        self, examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
    ) -> Evaluation:
        """All there is to see."""
        found = Counter(prediction.label for prediction in predictions)
        warnings: tuple[str, ...] = ()
        if len(found) == 1:
            warnings = (f"every prediction is {next(iter(found))!r}",)
        return Evaluation(self.measure(examples, predictions), warnings=warnings)

    def show(self, example: ClassifyExample) -> str:
        """The text, or the pair."""
        return example.text if example.pair is None else f"{example.text} ||| {example.pair}"

    def describe(self, prediction: Classification) -> str:
        """The label and its probability."""
        return f"{prediction.label}\t{prediction.probability:.4f}"

    def to_json(self, prediction: Classification) -> dict[str, Any]:
        """All probabilities."""
        return asdict(prediction)
