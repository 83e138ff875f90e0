"""Predictions of a fine-tuned model: inputs to typed results, for every task of `TASKS`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, overload

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError, NonFiniteError
from bertkit.base.settings import Settings
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import list_heads
from bertkit.inference.engines.choice import choose_engine, find_device
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.loading import LoadedModel
from bertkit.inference.prediction_counts import PredictionCounts, count_encoded
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.models.bert.architectures import FEATURE_BASED, find_architecture
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch
from bertkit.reports.notebook import ResultList, show_metrics
from bertkit.tasks.batch import Encoded
from bertkit.tasks.columns import name_labels
from bertkit.tasks.logits import Logits, compute_logits, cut_by_scores
from bertkit.tasks.saved import load_task
from bertkit.tasks.task import Task
from bertkit.training.finished import read_metrics

Input = TypeVar("Input")
Example = TypeVar("Example")
Prediction = TypeVar("Prediction")

ONE_INPUT = (str, bytes, tuple, Mapping)  # bytes are refused as a whole, not number by number


class Window(NamedTuple, Generic[Example]):
    """A group of examples, with their token ids and logits."""

    examples: list[Example]
    encoded: list[Encoded]
    logits: list[Logits]


@dataclass(frozen=True)
class Predictor(Generic[Input, Example, Prediction]):
    """Predicts for the task that the model was fine-tuned for.

    Attributes:
        task: the model's task.
        loaded: the model and its tokenizer.
        engine: the runtime of the encoder.
        metrics: of the held-out examples, if `bertkit finetune` wrote the model; else empty.
    """

    task: Task[Example, Prediction]
    loaded: LoadedModel[FineTunedBert]
    engine: Engine
    metrics: Mapping[str, float] = field(default_factory=dict)

    task_kind: ClassVar[type[Task[Any, Any]] | None] = None  # None for any task

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        revision: str | None = None,
        engine: EngineName = "auto",
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load a model folder of `bertkit finetune`, or a model fine-tuned with another tool.

        Args:
            path: the folder, or the id of a model of the Hub.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.
            engine: the runtime; auto takes the fastest that is installed.
            precision: of the encoder's weights and matrix products, as in `choose_engine`.

        Raises:
            CheckpointError: the model has no task or another one, or supports fewer tokens than its
                task's max_length.
            BertkitError: it can't be loaded, as in `LoadedModel.load`.
        """
        checkpoint = open_checkpoint(resolve_model(path, revision=revision))
        config = BertConfig.from_dict(checkpoint.config, checkpoint.folder)
        heads = list_heads(checkpoint.tensors)
        architecture = find_architecture(checkpoint.config, heads, checkpoint.folder)
        task = load_task(checkpoint.folder, config, architecture)
        if cls.task_kind is not None and not isinstance(task, cls.task_kind):
            raise CheckpointError(
                f"{checkpoint.folder} is a model for the task {task.name}, not"
                f" {cls.task_kind.name}; load it with Predictor, or use `bertkit {task.name}`"
            )
        limit = config.max_position_embeddings
        if task.settings.max_length > limit:
            raise CheckpointError(
                f"{checkpoint.folder}: the task's max_length is {task.settings.max_length:,}, and"
                f" the model takes at most {limit:,} tokens; its files don't belong together"
            )
        kind = BertFeatureBased if architecture == FEATURE_BASED else task.model_kind
        loaded = LoadedModel.from_checkpoint(kind, checkpoint, device)
        model = loaded.model
        chosen = choose_engine(engine, model, model.head_layers, precision)
        return cls(task, loaded, chosen, read_metrics(checkpoint.folder))

    def giving(self, answers: Settings) -> Self:
        """Return the predictor with these settings of what a prediction gives."""
        return replace(self, task=replace(self.task, **answers.model_dump()))

    def _repr_html_(self) -> str:
        """Show task, labels and metrics in a notebook."""
        labels = f": {name_labels(self.task.labels)}" if self.task.labels else ""
        return show_metrics(f"{type(self).__name__}{labels}", self.metrics)

    @overload
    def __call__(self, inputs: Input) -> Prediction: ...

    @overload
    def __call__(self, inputs: Sequence[Input]) -> list[Prediction]: ...

    def __call__(self, inputs: Input | Sequence[Input]) -> Prediction | list[Prediction]:
        """Predict for one input, or for several.

        Args:
            inputs: one input in the task's format (a text, a tuple or a mapping), or a list or
                another iterable of several.
        """
        if isinstance(inputs, Iterable) and not isinstance(inputs, ONE_INPUT):
            return ResultList(self.stream(inputs))
        example = self.task.make_example(inputs, "the input")
        examples, encoded = self._encode([example])
        window = Window(examples, encoded, self.logits(encoded))
        ((_, prediction),) = self.decode(window)
        return prediction

    def stream(self, inputs: Iterable[Input]) -> Iterator[Prediction]:
        """Predict for any number of inputs, in their order and in bounded memory.

        Raises:
            InputError: one input is given instead of several, or an input has the wrong type.
        """
        if isinstance(inputs, ONE_INPUT):
            raise InputError("expected several inputs, got one; call the predictor with it")
        if hasattr(inputs, "columns") or not isinstance(inputs, Iterable):
            raise InputError(
                f"expected a list of inputs, got {type(inputs).__name__}; bertkit.predict reads"
                " data frames and files"
            )
        examples = (
            self.task.make_example(value, f"input {number}")
            for number, value in enumerate(inputs, start=1)
        )
        return (prediction for _, prediction in self.stream_examples(examples))

    def stream_examples(
        self, examples: Iterable[Example], counts: PredictionCounts | None = None
    ) -> Iterator[tuple[Example, Prediction]]:
        """Yield examples with their predictions, in order and in bounded memory.

        Args:
            examples: read a window at a time.
            counts: updated before the predictions of each window are yielded.
        """
        for window in self.stream_windows(examples):
            if counts is not None:
                counts.add(count_encoded(self.task, window.encoded))
            yield from self.decode(window)

    def stream_windows(self, examples: Iterable[Example]) -> Iterator[Window[Example]]:
        """Yield windows of some thousands of examples, with their logits.

        Windows are smaller if labels are very many. While the model computes one window, a thread
        encodes the next.
        """
        task, windows = self.task, cut_windows(examples, self.task.num_chars)
        for examples_of, encoded in encode_ahead(windows, self._encode):
            for part in cut_by_scores(encoded, len(task.labels), row=task.row):
                chosen = encoded[part.start : part.stop]
                yield Window(examples_of[part.start : part.stop], chosen, self.logits(chosen))

    def decode(
        self, window: Window[Example], *, in_brief: bool = False
    ) -> Iterator[tuple[Example, Prediction]]:
        """Decode the examples of a window; `in_brief` as in `Task.decode_in_brief`."""
        decode = self.task.decode_in_brief if in_brief else self.task.decode
        rows = zip(window.examples, window.encoded, window.logits, strict=True)
        return ((example, decode(example, one, row)) for example, one, row in rows)

    def logits(self, encoded: list[Encoded]) -> list[Logits]:
        """Compute the logits of examples, as in `compute_logits`."""
        return compute_logits(
            self._compute,
            encoded,
            row=self.task.row,
            tokens_per_batch=self.engine.tokens_per_batch,
        )

    def _encode(self, examples: list[Example]) -> tuple[list[Example], list[Encoded]]:
        """Return examples with their token ids."""
        encoded = self.task.encode(examples, self.loaded.tokenizer)
        num_segments = self.loaded.model.config.type_vocab_size
        sequences = (sequence for one in encoded for sequence in one.sequences)
        if num_segments < 2 and any(1 in sequence.segments for sequence in sequences):
            raise InputError("this model takes single texts (type_vocab_size is 1), not pairs")
        return examples, encoded

    @torch.inference_mode()
    def _compute(self, batch: PackedBatch) -> Float[Tensor, "rows ..."]:
        """Compute the logits of a batch."""
        model, placed = self.loaded.model, batch.to(find_device(self.loaded.model))
        is_plain = isinstance(self.engine, TorchEngine) and self.engine.precision == "fp32"
        if is_plain:  # computes less if the head needs only C
            scores = model.scores(placed)
        else:
            states = self.engine(batch)
            tokens = states[0] if len(states) == 1 else torch.cat(states, dim=1)
            scores = model.head_scores(tokens, placed)
        if not scores.isfinite().all():
            raise NonFiniteError(
                "the model's logits aren't finite; check the model with `bertkit inspect`"
            )
        return scores
