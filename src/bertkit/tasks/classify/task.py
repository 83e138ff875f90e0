"""The task classify: C, then a linear layer; one label per text or pair, or multi-label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import show
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits
from bertkit.tasks.classify import DEFAULT_THRESHOLD, ClassifySettings, decoding
from bertkit.tasks.classify import examples as records
from bertkit.tasks.classify.decoding import THRESHOLD, Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import ClassifyScoring, JointScoring
from bertkit.tasks.columns import name_labels, spell_label
from bertkit.tasks.task import Task, choose_activation
from bertkit.tasks.texts import encode_texts, learn_pairs
from bertkit.tokenization.tokenizer import Tokenizer

MULTI_LABEL = "multi_label_classification"
ONE_LABEL = "single_label_classification"
MANY_LABELS = 1000  # with more, an evaluation keeps only the likeliest probabilities
MAX_KEPT = 100
MAX_GIVEN = 1 << 27  # predicted labels of all texts in an evaluation: 1 GB


@dataclass(frozen=True)
class Classify(Task[ClassifyExample, Classification]):
    """Classification of texts or pairs of texts."""

    settings: ClassifySettings
    label_weights: tuple[float, ...] = ()  # class weights of the loss; empty if all are equal
    top_k: int | None = None  # how many labels a prediction gives, best first; None for all, by id

    name: ClassVar = "classify"
    example_kind: ClassVar = ClassifyExample
    architecture: ClassVar = "BertForSequenceClassification"
    loss_home: ClassVar = "bertkit.tasks.classify.loss:score_labels"

    def __post_init__(self) -> None:
        """Refuse to keep the labels of too many texts, which may be given all of very many."""
        most = MAX_GIVEN // max(1, len(self.labels))
        if self.settings.multi_label and self.num_kept_together > most:
            raise InputError(
                f"with multi_label, {len(self.labels):,} labels are evaluated on at most {most:,}"
                f" texts, and there are {self.num_kept_together:,}; give fewer texts (--dev in"
                " training), or drop rare labels"
            )

    @property
    def positive(self) -> str | None:
        """The label that F1 is computed for; None if none is named and there are more than two."""
        named = self.settings.positive_label
        return self.labels[1] if named is None and len(self.labels) == 2 else named

    @classmethod
    def from_examples(cls, settings: ClassifySettings, examples: Sequence[ClassifyExample]) -> Self:
        """Build the task with the listed labels, or those of the examples; set `pairs`."""
        labels = records.find_labels(settings, examples)
        settings = learn_pairs(settings, (example.texts for example in examples))
        return cls(settings, labels, label_weights=records.weigh_labels(settings, labels, examples))

    @classmethod
    def from_config(
        cls, settings: ClassifySettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task with the labels and the problem type of the config."""
        labels = config.label_names
        if config.problem_type == MULTI_LABEL:  # another tool's model has this only in its config
            settings = settings.model_copy(update={"multi_label": True})
        if config.problem_type == "regression" or (len(labels) < 2 and not settings.multi_label):
            raise CheckpointError(
                "a classifier needs at least two labels, and the config is that of a regression;"
                " use `bertkit regress`"
            )
        spelled = tuple(map(spell_label, labels))
        labels = spelled if len(set(spelled)) == len(labels) else labels
        if settings.positive_label not in (None, *labels):
            raise CheckpointError(
                f"the positive_label {settings.positive_label!r:.40} of task.json isn't among the"
                f" labels of config.json: {name_labels(labels)}"
            )
        return cls(settings, labels, numbers)

    @property
    def config_changes(self) -> dict[str, Any]:
        """The labels, and single-label or multi-label as problem type."""
        is_multi = self.settings.multi_label
        return {
            "id2label": dict(enumerate(self.labels)),
            "problem_type": MULTI_LABEL if is_multi else ONE_LABEL,
            **choose_activation("sigmoid" if is_multi else "identity"),
        }

    def list_warnings(self, examples: Sequence[ClassifyExample]) -> list[str]:
        """Report pairs, texts without a label, and the positive label if it is ambiguous."""
        lines = records.list_warnings(examples)
        has_f1 = self.positive is not None and not self.settings.multi_label
        if has_f1 and not records.has_clear_positive(self.settings, self.labels):
            name = show(self.positive or "")
            lines.append(f"f1 is that of '{name}'; --labels in another order changes that")
        if self.settings.class_weights == "none" and not self.settings.multi_label:
            lines += records.advise_weights(examples)
        return lines

    def encode(self, examples: Sequence[ClassifyExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; long texts are cut or windowed."""
        ids = {label: id_ for id_, label in enumerate(self.labels)}
        num_flags = len(ids) if self.settings.multi_label else None
        readings = encode_texts([each.texts for each in examples], self.settings, tokenizer)
        return [
            replace(reading, labels=self._number(example, ids), num_flags=num_flags)
            for example, reading in zip(examples, readings, strict=True)
        ]

    def _number(
        self, example: ClassifyExample, ids: dict[str, int]
    ) -> npt.NDArray[np.number] | None:
        """Return the label id as the loss's target, or the ids of several labels."""
        if example.labels is None:
            return None
        if not self.settings.multi_label:
            (label,) = example.labels
            return np.array([ids.get(label, IGNORED_LABEL)])
        return np.array([ids[label] for label in example.labels if label in ids], dtype=np.int32)

    def decode(self, example: ClassifyExample, encoded: Encoded, logits: Logits) -> Classification:
        """Return the likeliest label, or all that reach the threshold, with probabilities."""
        del example, encoded
        scores: Logits = logits.mean(axis=0)  # over the windows
        is_multi = self.settings.multi_label
        if len(scores) <= MANY_LABELS:
            values = decoding.find_probabilities(
                scores.tolist(), self.temperature, multi_label=is_multi
            )
            found = self._choose(self.labels, scores, values)
        else:
            shares = decoding.find_many_probabilities(
                scores, self.temperature, multi_label=is_multi
            )
            found = self._choose_of_many(scores, shares)
        return found if self.top_k is None else found.keep_likeliest(self.top_k)

    def _choose_of_many(self, scores: Logits, shares: npt.NDArray[np.float64]) -> Classification:
        """Return the labels that are given, with all probabilities, or the likeliest if kept."""
        if not self.num_kept_together:
            return self._choose(self.labels, scores, shares.tolist())
        kept = decoding.find_likeliest(scores, MAX_KEPT)
        labels = [self.labels[id_] for id_ in kept]
        found = self._choose(labels, scores[kept], shares[kept].tolist())
        if not self.settings.multi_label:
            return found
        given = np.flatnonzero(shares >= self.threshold).tolist()  # may be more than are kept
        return replace(found, labels=tuple(self.labels[id_] for id_ in given))

    @property
    def threshold(self) -> float:
        """Minimum probability of a predicted label, with multi-label."""
        chosen = self.settings.threshold
        return self.numbers.get(THRESHOLD, DEFAULT_THRESHOLD if chosen == "best" else chosen)

    def _choose(
        self, labels: Sequence[str], scores: Logits, values: Sequence[float]
    ) -> Classification:
        if not self.settings.multi_label:
            return decoding.choose_labels(labels, scores, values)
        return decoding.choose_labels(
            labels, scores, values, self.threshold, self.settings.label_separator
        )

    def fit_numbers(
        self,
        examples: Sequence[ClassifyExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """Fit the temperature, and the threshold if asked for, on held-out examples."""
        del examples
        scores = np.array([rows.mean(axis=0) for rows in logits], dtype=np.float64)
        labels = np.concatenate([one.label_rows for one in encoded])
        if self.settings.multi_label:
            needs_threshold = self.settings.threshold == "best"
            found = decoding.fit_joint(scores, labels > 0, needs_threshold=needs_threshold)
        else:
            found = decoding.fit(scores, labels)
        return replace(self, numbers={**self.numbers, **found})

    def score(
        self, examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
    ) -> ClassifyScoring | JointScoring:
        """Compare labels with true ones."""
        if self.settings.multi_label:
            return JointScoring(examples, predictions, self.labels)
        return ClassifyScoring(examples, predictions, self.labels, self.positive)
