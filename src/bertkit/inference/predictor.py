"""Predictions of a fine-tuned model: inputs to typed results, for every task of `TASKS`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, overload

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError, NonFiniteError
from bertkit.base.settings import Settings, validate
from bertkit.inference.engines.choice import choose_engine, find_device
from bertkit.inference.engines.engine import Engine, TorchEngine
from bertkit.inference.loading import LoadedModel
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.inference.stream import cut_windows, encode_ahead
from bertkit.models.bert.architectures import FEATURE_BASED
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.reports.notebook import ResultList, show_metrics
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.scoring import Answer
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.batch import Encoded, Logits, compute_logits, cut_by_scores
from bertkit.tasks.choose.task import Choice, Choose, ChooseExample
from bertkit.tasks.classify import ClassifyAnswers
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import Classification
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.columns import name_labels
from bertkit.tasks.regress.task import Regress, RegressExample, Regression
from bertkit.tasks.saved import load_task
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import check_several, check_texts
from bertkit.training.lifecycle import read_metrics


@dataclass
class PredictionCounts:
    """Counts over the inputs of predictions.

    Attributes:
        inputs: all inputs.
        tokens: tokens that the model processed, including special tokens and overlaps of windows.
        empty: inputs without a token, such as white space; they are encoded as [CLS] [SEP].
        truncated: inputs of which a part was cut off.
        windowed: inputs that were split into several windows.
    """

    inputs: int = 0
    tokens: int = 0
    empty: int = 0
    truncated: int = 0
    windowed: int = 0

    def add(self, other: "PredictionCounts") -> None:
        """Add the counts of another object."""
        for name in (count.name for count in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def count_encoded(task: Task[Any, Any], encoded: Sequence[Encoded]) -> PredictionCounts:
    """Count encoded examples of a task."""
    return PredictionCounts(
        inputs=len(encoded),
        tokens=sum(one.num_tokens for one in encoded),
        empty=sum(map(is_empty, encoded)),
        truncated=sum(one.is_cut for one in encoded),
        windowed=sum(task.sequence == "window" and len(one.sequences) > 1 for one in encoded),
    )


def is_empty(encoded: Encoded) -> bool:
    """Whether an example has only special tokens: [CLS], and [SEP] after each text."""
    return all(len(ids) == 2 + segments[-1] for ids, segments in encoded.sequences)


@dataclass(frozen=True)
class NamedText:
    """A text with its name in error messages, such as line 3 of a file."""

    name: str
    text: str

    def __len__(self) -> int:
        return len(self.text)


def name_texts(texts: Iterable[str | NamedText]) -> Iterator[NamedText]:
    """Name each unnamed text by its number."""
    check_several(texts)
    for number, text in enumerate(texts, start=1):
        named = text if isinstance(text, NamedText) else NamedText(f"text {number}", text)
        check_texts([named.text])
        yield named


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
        opened = OpenModel.open(path, revision=revision)
        task = load_task(opened.folder, opened.config, opened.architecture)
        if cls.task_kind is not None and not isinstance(task, cls.task_kind):
            raise CheckpointError(
                f"{opened.folder} is a model for the task {task.name}, not"
                f" {cls.task_kind.name}; load it with Predictor, or use `bertkit {task.name}`"
            )
        limit = opened.config.max_position_embeddings
        if task.settings.max_length > limit:
            raise CheckpointError(
                f"{opened.folder}: the task's max_length is {task.settings.max_length:,}, and"
                f" the model takes at most {limit:,} tokens; its files don't belong together"
            )
        kind = BertFeatureBased if opened.architecture == FEATURE_BASED else task.model_kind
        loaded = LoadedModel.load(kind, opened, device)
        model = loaded.model
        chosen = choose_engine(engine, model, model.head_layers, precision)
        return cls(task, loaded, chosen, read_metrics(opened.folder))

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


class Classifier(Predictor[str | tuple[str, str], ClassifyExample, Classification]):
    """Classifies texts, or pairs of texts.

    A call with a text or a tuple of two returns a `Classification`; a call with a list, a list.

    Examples:
        >>> classify = Classifier.load("sentiment/")  # doctest: +SKIP
        >>> classify("a gripping film").label  # doctest: +SKIP
        'positive'
        >>> [one.probability for one in classify(["a film", "dull"])]  # doctest: +SKIP
        [0.71, 0.98]
        >>> classify("a gripping film", top_k=2).probabilities  # doctest: +SKIP
        {'positive': 0.93, 'neutral': 0.05}
    """

    task_kind: ClassVar = Classify

    @overload  # a text is a sequence of texts, too: the first that fits is meant
    def __call__(  # type: ignore[overload-overlap]
        self, inputs: str | tuple[str, str], *, top_k: int | None = None
    ) -> Classification: ...

    @overload
    def __call__(
        self, inputs: Sequence[str | tuple[str, str]], *, top_k: int | None = None
    ) -> list[Classification]: ...

    def __call__(
        self,
        inputs: str | tuple[str, str] | Sequence[str | tuple[str, str]],
        *,
        top_k: int | None = None,
    ) -> Classification | list[Classification]:
        """Classify one input, or several.

        Args:
            inputs: a text, a tuple of two, or a list or another iterable of several.
            top_k: give the probabilities of the likeliest labels only, best first.

        Raises:
            SettingsError: `top_k` is below 1.
        """
        if top_k is None:
            return super().__call__(inputs)
        answers = validate(ClassifyAnswers, {"top_k": top_k}, "the classifier")
        return super(Classifier, self.giving(answers)).__call__(inputs)


class Regressor(Predictor[str | tuple[str, str], RegressExample, Regression]):
    """Predicts a number for texts, or pairs of texts.

    A call with a text or a tuple of two returns a `Regression`; a call with a list, a list.

    Examples:
        >>> compare = Regressor.load("similarity/")  # doctest: +SKIP
        >>> compare(("A plane takes off.", "An air plane is taking off.")).value  # doctest: +SKIP
        4.83
    """

    task_kind: ClassVar = Regress


class Tagger(Predictor[str | tuple[str, ...], TagExample, Tagging]):
    """Tags the words of texts, and finds entities.

    A call with a text or a tuple of its words returns a `Tagging`; a call with a list, a list.

    Examples:
        >>> tag = Tagger.load("names/")  # doctest: +SKIP
        >>> tagging = tag("Ada Lovelace lived in London.")  # doctest: +SKIP
        >>> [(one.type, one.text) for one in tagging.entities]  # doctest: +SKIP
        [('person', 'Ada Lovelace'), ('location', 'London')]
    """

    task_kind: ClassVar = Tag


class Answerer(Predictor[tuple[str, str] | Mapping[str, str], AnswerExample, Answer]):
    """Answers questions with a part of a context.

    A call with a tuple (question, context) returns an `Answer`; a call with a list, a list.

    Examples:
        >>> answer = Answerer.load("squad/")  # doctest: +SKIP
        >>> answer(("Who wrote it?", "Ada wrote it in 1843.")).text  # doctest: +SKIP
        'Ada'
    """

    task_kind: ClassVar = AnswerQuestions


class Chooser(Predictor[tuple[str, Sequence[str]] | Mapping[str, Any], ChooseExample, Choice]):
    """Multiple choice among answers or endings.

    A call with a tuple (context, choices), or a mapping of `context`, `choices` and optionally
    `question`, returns a `Choice`; a call with a list, a list.

    Examples:
        >>> choose = Chooser.load("swag/")  # doctest: +SKIP
        >>> choose(("She opened the umbrella.", ["It rained.", "It sang."])).text  # doctest: +SKIP
        'It rained.'
    """

    task_kind: ClassVar = Choose
