"""Fine-tuning as people do it in transformers: the features, the answers and the `Trainer`.

The features are made of the raw examples by transformers' own tokenizer, as its example scripts
make them, and nothing here uses bertkit: what agrees with bertkit agrees with another program.
Batches are padded to their longest sequence; attention is SDPA.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
)

from task_sets import Example, TaskSet, read_part

DOC_STRIDE = 128  # tokens from the beginning of a window to that of the next
NUM_BEST = 20  # beginnings and ends of a window that are looked at
MAX_ANSWER_TOKENS = 30
IGNORED = -100
OUTSIDE = "O"
MAX_LENGTHS = {"classify": 128, "tag": 128, "answer": 384}

Feature = dict[str, Any]
Scores = npt.NDArray[np.float32]
Collate = Callable[[list[Feature]], dict[str, torch.Tensor]]


@dataclass(frozen=True)
class PeerTask(ABC):
    """One job: raw examples to features, scores to answers.

    Attributes:
        tokenizer: transformers' own.
        labels: what is told apart; empty where the job has no labels.
    """

    tokenizer: Any
    labels: tuple[str, ...]
    model_class: ClassVar[Any]

    @abstractmethod
    def build_features(self, examples: Sequence[Example]) -> list[Feature]:
        """What the model is given for them; `inputs_of` leaves out what only decoding needs."""

    @abstractmethod
    def decode(
        self, examples: Sequence[Example], features: Sequence[Feature], scores: Any
    ) -> list[Any]:
        """An answer for each example, from the padded scores of all features."""


def build_peer_task(task_set: TaskSet, folder: Path) -> PeerTask:
    """The job of a set, with the labels that its training part has."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if task_set.task == "answer":
        return PeerAnswer(tokenizer, ())
    examples = read_part(task_set, "train")
    if task_set.task == "tag":
        tags = {tag for example in examples for tag in example["tags"]}
        return PeerTag(tokenizer, tuple(sorted(tags)))
    labels = tuple(sorted({example["label"] for example in examples}))
    return PeerClassify(tokenizer, labels, tuple(task_set.columns.values()) or ("text",))


def inputs_of(features: Sequence[Feature]) -> list[Feature]:
    """Features without what begins with an underscore, which no model takes."""
    return [
        {name: value for name, value in feature.items() if not name.startswith("_")}
        for feature in features
    ]


@dataclass(frozen=True)
class PeerClassify(PeerTask):
    """One label for a text, or for a pair of texts."""

    columns: tuple[str, ...]
    model_class: ClassVar = AutoModelForSequenceClassification

    def build_features(self, examples: Sequence[Example]) -> list[Feature]:
        """Ids, cut at the end of the longer text."""
        texts = [[example[column] for example in examples] for column in self.columns]
        encoded = self.tokenizer(*texts, truncation=True, max_length=MAX_LENGTHS["classify"])
        targets = [self.labels.index(example["label"]) for example in examples]
        return [
            {**{name: values[row] for name, values in encoded.items()}, "labels": target}
            for row, target in enumerate(targets)
        ]

    def decode(
        self, examples: Sequence[Example], features: Sequence[Feature], scores: Scores
    ) -> list[str]:
        """The likeliest label."""
        del examples, features
        return [self.labels[label] for label in scores.argmax(axis=-1)]


@dataclass(frozen=True)
class PeerTag(PeerTask):
    """A tag for each word, read at its first piece."""

    model_class: ClassVar = AutoModelForTokenClassification

    def build_features(self, examples: Sequence[Example]) -> list[Feature]:
        """Ids, and the tag at the first piece of each word."""
        encoded = self.tokenizer(
            [example["tokens"] for example in examples],
            is_split_into_words=True,
            truncation=True,
            max_length=MAX_LENGTHS["tag"],
        )
        features = []
        for row, example in enumerate(examples):
            words = encoded.word_ids(row)
            firsts = {word: place for place, word in reversed([*enumerate(words)])}
            firsts.pop(None, None)
            targets = [IGNORED] * len(words)
            for word, place in firsts.items():
                targets[place] = self.target(example["tags"][word])
            inputs = {name: values[row] for name, values in encoded.items()}
            features.append({**inputs, "labels": targets, "_firsts": firsts})
        return features

    def target(self, tag: str) -> int:
        """The number of a tag; one that training doesn't have can't be right."""
        return self.labels.index(tag) if tag in self.labels else IGNORED

    def decode(
        self, examples: Sequence[Example], features: Sequence[Feature], scores: Scores
    ) -> list[list[str]]:
        """The likeliest tag of each word; O for words without a piece or behind the cut."""
        answers = []
        for example, feature, row in zip(examples, features, scores.argmax(axis=-1), strict=True):
            tags = [OUTSIDE] * len(example["tokens"])
            for word, place in feature["_firsts"].items():
                tags[word] = self.labels[row[place]]
            answers.append(tags)
        return answers


@dataclass(frozen=True)
class PeerAnswer(PeerTask):
    """Where in the paragraph the answer stands."""

    model_class: ClassVar = AutoModelForQuestionAnswering

    def build_features(self, examples: Sequence[Example]) -> list[Feature]:
        """Windows of question and paragraph, each with the answer's place, or [CLS] without one."""
        return [
            feature
            for row, example in enumerate(examples)
            for feature in self.build_windows(row, example)
        ]

    def build_windows(self, row: int, example: Example) -> list[Feature]:
        """The windows of one question."""
        limit = MAX_LENGTHS["answer"]
        room = limit - len(self.tokenizer(example["question"])["input_ids"]) - 1
        encoded = self.tokenizer(
            example["question"],
            example["context"],
            truncation="only_second",
            max_length=limit,
            stride=room - DOC_STRIDE,  # here a word for the overlap
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        answer = example["answers"][0]
        start, stop = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        windows = []
        for window, all_offsets in enumerate(encoded["offset_mapping"]):
            segments = encoded.sequence_ids(window)
            offsets = [
                pair if segment == 1 else None
                for pair, segment in zip(all_offsets, segments, strict=True)
            ]
            first, last = find_place(offsets, start, stop)
            inputs = {name: encoded[name][window] for name in self.tokenizer.model_input_names}
            positions = {"start_positions": first, "end_positions": last}
            windows.append({**inputs, **positions, "_offsets": offsets, "_row": row})
        return windows

    def decode(
        self, examples: Sequence[Example], features: Sequence[Feature], scores: Any
    ) -> list[str]:
        """The best span of all windows of each question."""
        found: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for feature, starts, ends in zip(features, *scores, strict=True):
            found[feature["_row"]] += best_spans(feature["_offsets"], starts, ends)
        answers = []
        for row, example in enumerate(examples):
            _, start, stop = max(found[row], default=(0.0, 0, 0))
            answers.append(example["context"][start:stop])
        return answers


def find_place(offsets: Sequence[tuple[int, int] | None], start: int, stop: int) -> tuple[int, int]:
    """First and last token of a span of characters; twice 0, [CLS], where it isn't all there."""
    inside = [place for place, pair in enumerate(offsets) if pair is not None]
    first_pair, last_pair = offsets[inside[0]], offsets[inside[-1]]
    assert first_pair is not None
    assert last_pair is not None
    if first_pair[0] > start or last_pair[1] < stop:
        return 0, 0
    covered = [
        place
        for place in inside
        if (pair := offsets[place]) is not None and pair[0] < stop and pair[1] > start
    ]
    return covered[0], covered[-1]


def best_spans(
    offsets: Sequence[tuple[int, int] | None], starts: Scores, ends: Scores
) -> list[tuple[float, int, int]]:
    """Scores and characters of the spans that a window allows."""
    spans = []
    length = len(offsets)  # scores may be padded
    for first in np.argsort(starts[:length])[: -NUM_BEST - 1 : -1].tolist():
        for last in np.argsort(ends[:length])[: -NUM_BEST - 1 : -1].tolist():
            opening, closing = offsets[first], offsets[last]
            if opening is None or closing is None:
                continue
            if first <= last < first + MAX_ANSWER_TOKENS:
                spans.append((float(starts[first] + ends[last]), opening[0], closing[1]))
    return spans


def build_collator(task: PeerTask) -> Collate:
    tokenizer = task.tokenizer
    if isinstance(task, PeerTag):
        return DataCollatorForTokenClassification(tokenizer)  # type: ignore[no-any-return]
    return DataCollatorWithPadding(tokenizer)  # type: ignore[no-any-return]


def load_peer_model(task: PeerTask, folder: Path) -> Any:
    """The encoder of a folder with the head of the task."""
    names = dict(enumerate(task.labels)) or {0: "LABEL_0", 1: "LABEL_1"}
    return task.model_class.from_pretrained(
        folder,
        attn_implementation="sdpa",
        dtype=torch.float32,
        id2label=names,
        label2id={name: number for number, name in names.items()},
    )
