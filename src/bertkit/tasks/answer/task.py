"""The task answer: a start and an end vector over T_i score an answer's borders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.answer import STRIDE, AnswerSettings, scoring
from bertkit.tasks.answer import examples as records
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.scoring import (
    Answer,
    AnswerScoring,
    Places,
    Windows,
    find_answer,
    find_owners,
    find_tokens,
)
from bertkit.tasks.batch import Encoded, Logits, TokenSequence
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer

NULL_THRESHOLD = "null_threshold"
DEFAULT_THRESHOLD = 0.0  # logits; that of google-research/bert


@dataclass(frozen=True)
class AnswerQuestions(Task[AnswerExample, Answer]):
    """Extractive question answering."""

    settings: AnswerSettings

    name: ClassVar = "answer"
    example_kind: ClassVar = AnswerExample
    architecture: ClassVar = "BertForQuestionAnswering"
    scored: ClassVar = "token"
    loss_home: ClassVar = "bertkit.tasks.answer.loss:score_borders"
    scorer_files: ClassVar = {  # as google-research/bert writes them
        "predictions.json": "text",
        "nbest_predictions.json": "n_best_scores",
        "null_odds.json": "null_odds",
    }
    config_changes: ClassVar = {"num_labels": 2}  # start and end

    list_warnings = staticmethod(records.list_warnings)

    @classmethod
    def from_examples(cls, settings: AnswerSettings, examples: Sequence[AnswerExample]) -> Self:
        """Build the task; version auto is SQuAD 2.0 if a question has no answer, else 1.1."""
        num_answerable = int(scoring.list_answerable(examples).sum())
        num_impossible = len(examples) - num_answerable
        if not num_answerable:
            raise InputError("no question has an answer, so there is nothing to learn")
        if num_impossible and settings.version == "1.1":
            raise InputError(
                f"{num_impossible:,} of {len(examples):,} questions have no answer, which SQuAD"
                f" 1.1 doesn't allow; leave them out, or set version to 2.0"
            )
        found = "2.0" if num_impossible else "1.1"
        version = found if settings.version == "auto" else settings.version
        return cls(settings.model_copy(update={"version": version}))

    @classmethod
    def from_config(
        cls, settings: AnswerSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task; a model of another tool answers every question (SQuAD 1.1)."""
        if config.num_labels != 2:
            raise CheckpointError(
                f"a question answering model has 2 labels, start and end, not {config.num_labels}"
            )
        version = "1.1" if settings.version == "auto" else settings.version
        if version == "2.0":  # a finished model keeps its threshold
            numbers = {NULL_THRESHOLD: DEFAULT_THRESHOLD, **numbers}
        return cls(settings.model_copy(update={"version": version}), numbers=numbers)

    @property
    def threshold(self) -> float:
        """Threshold on the odds of "no answer", in logits."""
        return self.numbers.get(NULL_THRESHOLD, DEFAULT_THRESHOLD)

    def encode(self, examples: Sequence[AnswerExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode as `[CLS] question [SEP] part of the context [SEP]`, one window per part."""
        questions = tokenizer.piece_ids([example.question for example in examples])
        contexts: dict[str, tuple[list[int], Places]] = {}  # questions share contexts
        found = []
        for example, question in zip(examples, questions, strict=True):
            if example.context not in contexts:
                whole = tokenizer.encode_pieces(example.context)
                offsets = np.array(whole.offsets, dtype=np.int32).reshape(-1, 2)
                contexts[example.context] = whole.ids, offsets
            found.append(self._encode(example, question, *contexts[example.context], tokenizer))
        return found

    def _encode(
        self,
        example: AnswerExample,
        question: list[int],
        context: list[int],
        offsets: Places,
        tokenizer: Tokenizer,
    ) -> Encoded:
        """Encode one question in windows."""
        room = self.settings.max_length - tokenizer.num_special(2)
        kept = question[: min(self.settings.question_limit, room - 1)]
        room -= len(kept)
        parts = self.settings.cutter(room, STRIDE).cut(len(context))
        _, num_before = tokenizer.find_starts(len(kept), 0)
        windows = Windows(parts, find_owners(parts, len(context)), offsets, num_before)
        sequences = tuple(
            TokenSequence(*tokenizer.join(kept, context[part.start : part.stop])) for part in parts
        )
        labels = None
        if example.answers is not None:
            labels = np.zeros((len(parts), 2), dtype=np.int64)  # [CLS]: not in the window
            tokens = None if example.span is None else find_tokens(offsets, example.span)
            for number, part in enumerate(parts):
                if tokens is not None and part.start <= tokens[0] and tokens[1] < part.stop:
                    labels[number] = np.array(tokens) - part.start + num_before
        is_cut = len(kept) < len(question) or parts[-1].stop < len(context)
        return Encoded(sequences, labels, is_cut, alignment=windows)

    def decode(self, example: AnswerExample, encoded: Encoded, logits: Logits) -> Answer:
        """Return the best span within one window, or "no answer"."""
        windows: Windows = encoded.alignment
        return find_answer(example.context, windows, logits, self.settings, self.threshold)

    def score(
        self, examples: Sequence[AnswerExample], predictions: Sequence[Answer]
    ) -> AnswerScoring:
        """Compare answers with true ones.

        Until a threshold of "no answer" is fitted, it is done with the best one, which the finished
        model will have.
        """
        if NULL_THRESHOLD not in self.numbers:
            task = self._with_threshold(examples, predictions)
            predictions = [answer.decide(task.threshold) for answer in predictions]
        return AnswerScoring(examples, predictions)

    def fit_numbers(
        self,
        examples: Sequence[AnswerExample],
        encoded: Sequence[Encoded],
        logits: Sequence[Logits],
    ) -> Self:
        """Fit the threshold of "no answer" with the best F1, under the rules of SQuAD 2.0."""
        rows = zip(examples, encoded, logits, strict=True)
        answers = [self.decode(example, one, scores) for example, one, scores in rows]
        return self._with_threshold(examples, answers)

    def _with_threshold(self, examples: Sequence[AnswerExample], answers: Sequence[Answer]) -> Self:
        if self.settings.version != "2.0":
            return self
        threshold = scoring.find_threshold(examples, answers)
        if threshold is None:
            return self
        return replace(self, numbers={**self.numbers, NULL_THRESHOLD: threshold})
