"""A fine-tuned model at work: inputs → typed answers, for every task of `TASKS`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import list_heads
from bertkit.inference.engines.choice import EngineName, choose_engine, find_device
from bertkit.inference.engines.engine import Engine
from bertkit.inference.loading import LoadedModel
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.models.bert.architectures import find_architecture
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify.task import Classification, Classify, ClassifyExample
from bertkit.tasks.logits import Logits, compute_logits
from bertkit.tasks.saved import load_task
from bertkit.tasks.task import Task

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")


@dataclass(frozen=True)
class Predictor(Generic[Example, Prediction]):
    """Answers for inputs of a task.

    Attributes:
        task: what the model is for.
        loaded: the model and its tokenizer.
        engine: the program that runs the encoder.
    """

    task: Task[Example, Prediction]
    loaded: LoadedModel[FineTunedBert]
    engine: Engine

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        revision: str | None = None,
        engine: EngineName = "auto",
    ) -> Self:
        """Load a folder that `bertkit finetune` wrote, or another tool's fine-tuned model.

        Args:
            path: the folder, or the id of a model of the Hub.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.
            engine: the program that computes; auto takes the fastest that is installed.

        Raises:
            CheckpointError: the model is for no task, or for another one.
            BertkitError: it can't be loaded, as in `LoadedModel.load`.
        """
        checkpoint = open_checkpoint(resolve_model(path, revision=revision))
        config = BertConfig.from_dict(checkpoint.config, checkpoint.folder)
        heads = list_heads(checkpoint.tensors)
        architecture = find_architecture(checkpoint.config, heads, checkpoint.folder)
        task = load_task(checkpoint.folder, config, architecture)
        cls.check_task(task, checkpoint.folder)
        loaded = LoadedModel.from_checkpoint(task.model_kind, checkpoint, device)
        return cls(task, loaded, choose_engine(engine, loaded.model))

    @classmethod
    def check_task(cls, task: Task[Any, Any], folder: Path) -> None:
        """Refuse a model that is for another task than this class.

        Raises:
            CheckpointError: it is so.
        """

    def __call__(self, inputs: Sequence[Any]) -> list[Prediction]:
        """The answer to each input; inputs are what the task's `make_example` takes.

        Raises:
            InputError: one is something else.
        """
        return list(self.stream(inputs))

    def stream(self, inputs: Iterable[Any]) -> Iterator[Prediction]:
        """Answers to any number of inputs, in their order and in bounded memory.

        Raises:
            InputError: one is something else than the task takes.
        """
        examples = (
            self.task.make_example(value, f"input {number}")
            for number, value in enumerate(inputs, start=1)
        )
        return self.stream_examples(examples)

    def stream_examples(self, examples: Iterable[Example]) -> Iterator[Prediction]:
        """Answers to examples, in their order and in bounded memory."""
        windows = encode_ahead(cut_windows(examples, self.task.num_chars), self._encode)
        return chain.from_iterable(self._predict(*window) for window in windows)

    def logits(self, encoded: Sequence[Encoded]) -> list[Logits]:
        """What the model makes of examples, as in `compute_logits`."""
        return compute_logits(
            self._compute,
            encoded,
            row=self.task.row,
            tokens_per_batch=self.engine.tokens_per_batch,
        )

    def _encode(self, examples: list[Example]) -> tuple[list[Example], list[Encoded]]:
        return examples, self.task.encode(examples, self.loaded.tokenizer)

    def _predict(self, examples: list[Example], encoded: list[Encoded]) -> Iterator[Prediction]:
        rows = zip(examples, encoded, self.logits(encoded), strict=True)
        return (self.task.decode(example, one, logits) for example, one, logits in rows)

    @torch.inference_mode()
    def _compute(self, batch: PackedBatch) -> Float[Tensor, "rows ..."]:
        (tokens,) = self.engine(batch)
        return self.loaded.model.head_scores(tokens, batch.to(find_device(self.loaded.model)))


class Classifier(Predictor[ClassifyExample, Classification]):
    """Labels texts.

    Examples:
        >>> classify = Classifier.load("sentiment/")  # doctest: +SKIP
        >>> classify(["a gripping film"])[0].label  # doctest: +SKIP
        'positive'
    """

    @classmethod
    def check_task(cls, task: Task[Any, Any], folder: Path) -> None:
        """Refuse a model that doesn't label texts.

        Raises:
            CheckpointError: it is so.
        """
        if not isinstance(task, Classify):
            raise CheckpointError(f"{folder} is a model for the task {task.name}, not classify")
