"""C, then a linear layer: one label for a text or a pair, or any number of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.reports.text import show
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, TaskBatch
from bertkit.tasks.classify import decoding, joint_scoring, scoring
from bertkit.tasks.classify import examples as records
from bertkit.tasks.classify.decoding import THRESHOLD, Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.settings import ClassifySettings
from bertkit.tasks.columns import name_labels
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.long_texts import encode_texts, pool_windows
from bertkit.tasks.task import TEMPERATURE, Task, TaskScores
from bertkit.tasks.texts import learn_pairs, read_texts
from bertkit.tokenization.tokenizer import Tokenizer

MULTI_LABEL = "multi_label_classification"
ONE_LABEL = "single_label_classification"
MANY_LABELS = 1000  # of more, an evaluation keeps the probabilities of the likeliest
MAX_KEPT = 100
LABEL_COLUMNS = 200  # of an answer in a line; JSON has all
MAX_GIVEN = 1 << 27  # labels of all texts of an evaluation: 1 GB


@dataclass(frozen=True)
class Classify(Task[ClassifyExample, Classification]):
    """Labels texts or pairs of texts.

    Attributes:
        label_weights: what a mistake on each label costs while it is trained; empty where all cost
            the same.
    """

    label_weights: tuple[float, ...] = ()

    name: ClassVar = "classify"
    settings_kind: ClassVar = ClassifySettings
    model_kind: ClassVar = BertForSequenceClassification
    row: ClassVar[Literal["sequence", "token"]] = "sequence"

    @property
    def metric(self) -> str:
        """The one that was chosen: by default accuracy, or micro F1 of several labels."""
        metric: str = self.settings.chosen_metric
        return metric

    @property
    def positive(self) -> str | None:
        """The label that f1 is of; None where none was named and there are more than two."""
        named: str | None = self.settings.positive_label
        return self.labels[1] if named is None and len(self.labels) == 2 else named

    @classmethod
    def build_parser(
        cls, settings: ClassifySettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], ClassifyExample]:
        """Look for text, pair and label in their columns."""
        return records.build_parser(settings, table, needs_answer=needs_answer)

    @classmethod
    def from_examples(cls, settings: ClassifySettings, examples: Sequence[ClassifyExample]) -> Self:
        """The labels that are listed, or those of the examples, and whether these are pairs."""
        labels = records.find_labels(settings, examples)
        settings = learn_pairs(settings, (example.texts for example in examples))
        return cls(settings, labels, label_weights=records.weigh_labels(settings, labels, examples))

    @classmethod
    def from_config(
        cls, settings: ClassifySettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """The labels of the config, and whether a text may have several."""
        names = config.id2label or {id_: f"LABEL_{id_}" for id_ in range(config.num_labels)}
        if config.problem_type == MULTI_LABEL:  # which only the config says of another tool's model
            settings = settings.model_copy(update={"multi_label": True})
        if config.problem_type == "regression" or (len(names) < 2 and not settings.multi_label):
            raise CheckpointError(
                "a classifier needs at least two labels, and the config is that of a regression;"
                " use `bertkit regress`"
            )
        if not numbers.get(TEMPERATURE, 1.0) > 0.0:
            raise CheckpointError(f"the temperature is {numbers[TEMPERATURE]}, and must be above 0")
        labels = tuple(names[id_] for id_ in range(len(names)))
        if settings.positive_label not in (None, *labels):
            raise CheckpointError(
                f"the positive_label {settings.positive_label!r:.40} of task.json isn't among the"
                f" labels of config.json: {name_labels(labels)}"
            )
        return cls(settings, labels, numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """Labels, and how many of them a text has."""
        return {
            "id2label": dict(enumerate(self.labels)),
            "problem_type": MULTI_LABEL if self.settings.multi_label else ONE_LABEL,
        }

    def check_number(self, num_examples: int) -> None:
        """Refuse very many labels for very many texts, each of which may be given all of them."""
        most = MAX_GIVEN // len(self.labels)
        if self.settings.multi_label and num_examples > most:
            raise InputError(
                f"with multi_label, {len(self.labels):,} labels are evaluated on at most {most:,}"
                f" texts, and there are {num_examples:,}; give fewer texts, with --dev in training,"
                " or leave out rare labels"
            )

    def make_example(self, value: Any, place: str) -> ClassifyExample:
        """A text, or a tuple of two."""
        return ClassifyExample(read_texts(value, place, self.settings), place=place)

    def num_chars(self, example: ClassifyExample) -> int:
        """Characters of text and pair."""
        return example.texts.num_chars

    def list_labels(self, example: ClassifyExample) -> Sequence[str]:
        """Its labels."""
        return example.labels or ()

    def list_warnings(self, examples: Sequence[ClassifyExample]) -> list[str]:
        """Whether they are pairs, how many have no label, and whose f1 is told, where in doubt."""
        lines = records.list_warnings(examples)
        has_f1 = self.positive is not None and not self.settings.multi_label
        if has_f1 and not records.has_clear_positive(self.settings, self.labels):
            lines.append(
                f"f1 is that of '{show(self.positive or '')}'; --positive-label names another"
            )
        return lines

    def encode(self, examples: Sequence[ClassifyExample], tokenizer: Tokenizer) -> list[Encoded]:
        """`[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; of a long text, perhaps windows."""
        ids = {label: id_ for id_, label in enumerate(self.labels)}
        num_flags = len(ids) if self.settings.multi_label else None
        readings = encode_texts([each.texts for each in examples], self.settings, tokenizer)
        return [
            Encoded(
                reading.sequences,
                self._number(example, ids),
                reading.is_cut,
                num_flags=num_flags,
            )
            for example, reading in zip(examples, readings, strict=True)
        ]

    def _number(self, example: ClassifyExample, ids: dict[str, int]) -> npt.NDArray[Any] | None:
        """The id that the loss compares with; or those of several labels."""
        if example.labels is None:
            return None
        if not self.settings.multi_label:
            (label,) = example.labels
            return np.array([ids.get(label, IGNORED_LABEL)])
        return np.array([ids[label] for label in example.labels if label in ids], dtype=np.int32)

    def loss(self, logits: Float[Tensor, "sequences labels"], batch: TaskBatch) -> TaskScores:
        """Cross-entropy; of several labels, that of each, their mean."""
        scores = pool_windows(logits, batch)
        weights = scores.new_tensor(self.label_weights) if self.label_weights else None
        guesses = scores.detach()
        if self.settings.multi_label:
            truth = batch.labels.to(scores.dtype)
            loss = F.binary_cross_entropy_with_logits(
                scores, truth, pos_weight=weights, reduction="sum"
            ) / len(self.labels)
            hits = ((guesses > 0) == (truth > 0)).all(dim=-1).sum()
        else:
            loss = F.cross_entropy(
                scores, batch.labels, weights, ignore_index=IGNORED_LABEL, reduction="sum"
            )
            hits = (guesses.argmax(dim=-1) == batch.labels).sum()
        return TaskScores({"task": loss}, {"task": hits})

    def decode(self, example: ClassifyExample, encoded: Encoded, logits: Logits) -> Classification:
        """The likeliest label, or all that reach the threshold, and how likely each is."""
        del example, encoded
        scores, is_multi = decoding.pool_windows(logits), self.settings.multi_label
        if len(scores) > MANY_LABELS:
            return self._choose(self.labels, self._find_many(scores).tolist())
        values = decoding.find_probabilities(
            scores.tolist(), self.temperature, multi_label=is_multi
        )
        return self._choose(self.labels, values)

    def decode_in_brief(
        self, example: ClassifyExample, encoded: Encoded, logits: Logits
    ) -> Classification:
        """The same; of more than 1,000 labels, with the probabilities of the 100 likeliest."""
        if len(self.labels) <= MANY_LABELS:
            return self.decode(example, encoded, logits)
        shares = self._find_many(decoding.pool_windows(logits))
        kept = decoding.find_likeliest(shares, MAX_KEPT)
        found = self._choose([self.labels[id_] for id_ in kept], shares[kept].tolist())
        if not self.settings.multi_label:
            return found
        given = np.flatnonzero(shares >= self.threshold).tolist()  # perhaps more than are kept
        return replace(found, labels=tuple(self.labels[id_] for id_ in given))

    @property
    def threshold(self) -> float:
        """The probability from which a label is given, where a text may have several."""
        threshold: float = self.numbers.get(THRESHOLD, self.settings.threshold)
        return threshold

    def _find_many(self, scores: Logits) -> npt.NDArray[np.float64]:
        return decoding.find_many_probabilities(
            scores, self.temperature, multi_label=self.settings.multi_label
        )

    def _choose(self, labels: Sequence[str], values: Sequence[float]) -> Classification:
        if self.settings.multi_label:
            return decoding.choose_labels(labels, values, self.threshold)
        return decoding.choose_label(labels, values)

    def fit_numbers(
        self,
        examples: Sequence[ClassifyExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """The same task with the temperature, and perhaps the threshold, of held-out examples."""
        del examples
        scores = np.array([decoding.pool_windows(rows) for rows in logits], dtype=np.float64)
        labels = np.concatenate([one.label_rows for one in encoded])
        if self.settings.multi_label:
            found = decoding.fit_joint(
                scores, labels > 0, needs_threshold=self.settings.find_threshold
            )
        else:
            found = decoding.fit(scores, labels)
        return replace(self, numbers={**self.numbers, **found})

    def measure(
        self, examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
    ) -> dict[str, float]:
        """Accuracy, F1s and Matthews' correlation; of several labels, F1s and subset accuracy."""
        if self.settings.multi_label:
            return joint_scoring.measure(examples, predictions, self.labels)
        return scoring.measure(examples, predictions, self.labels, self.positive)

    def evaluate(
        self, examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
    ) -> Evaluation:
        """Also intervals, each label, how sure is right, and the worst mistakes."""
        if self.settings.multi_label:
            return joint_scoring.evaluate(examples, predictions, self.labels)
        return scoring.evaluate(examples, predictions, self.labels, self.positive)

    def show(self, example: ClassifyExample) -> str:
        """The text, or the pair."""
        return example.texts.show()

    def describe(self, prediction: Classification) -> str:
        """The label and its probability, or each of the labels with its own."""
        if not self.settings.multi_label:
            return f"{show(prediction.label, LABEL_COLUMNS)}\t{prediction.probability:.4f}"
        shares = prediction.probabilities
        given = [f"{show(label, LABEL_COLUMNS)} {shares[label]:.4f}" for label in prediction.labels]
        return ", ".join(given) or joint_scoring.NO_LABEL

    def to_json(self, prediction: Classification) -> dict[str, Any]:
        """All probabilities."""
        if self.settings.multi_label:
            return {
                "labels": list(prediction.labels),
                "probabilities": prediction.probabilities,
            }
        return {
            "label": prediction.label,
            "probability": prediction.probability,
            "probabilities": prediction.probabilities,
        }
