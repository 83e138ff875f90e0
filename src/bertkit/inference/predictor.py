"""Predictions of a fine-tuned model: inputs to typed results, for every task of `TASKS`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.base.settings import Settings
from bertkit.checkpoints.run_folder import read_metrics
from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.data.problems import is_unknown
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.engines.engine import Engine, check_finite
from bertkit.inference.explain import Explainer
from bertkit.inference.explain_inputs import ReadInput
from bertkit.inference.loading import LoadedModel
from bertkit.inference.pipeline import NamedInput, Pipeline
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import InputCounts
from bertkit.models.bert.feature_head import LAYERS, read_feature_head
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.reports.notebook import show_metrics
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.scoring import Answer
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.batch import Encoded, Logits, compute_logits, cut_by_scores
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choice, Choose
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.columns import name_labels
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.regress.task import Regress, RegressExample, Regression
from bertkit.tasks.saved import load_task
from bertkit.tasks.settings import does_explain
from bertkit.tasks.table import TASKS
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag
from bertkit.tasks.task import AnyTask, Task, TaskExample, TaskPrediction


@dataclass
class PredictionCounts(InputCounts):
    """InputCounts over the inputs of predictions."""

    inputs: int = 0
    tokens: int = 0  # that the model processed, with special tokens and overlaps of windows
    text_tokens: int = 0  # of these, without special tokens
    unknown_tokens: int = 0  # of these, [UNK]
    empty: int = 0  # without a token, such as white space; encoded as [CLS] [SEP]
    unknown_only: int = 0  # with no word in the vocabulary
    truncated: int = 0  # of which a part was cut off
    windowed: int = 0  # split into several windows


Input = TypeVar("Input")
Example = TypeVar("Example", bound=TaskExample)
Prediction = TypeVar("Prediction", bound=TaskPrediction)


class EncodedExamples(NamedTuple, Generic[Example]):
    """Examples with their token ids."""

    examples: list[Example]
    encoded: list[Encoded]

    def __len__(self) -> int:
        return len(self.examples)

    @classmethod
    def join(cls, several: Sequence[Self]) -> Self:
        """Join the examples of several objects, in their order."""
        examples = chain.from_iterable(one.examples for one in several)
        return cls([*examples], [*chain.from_iterable(one.encoded for one in several)])


@dataclass(frozen=True)
class Predictor(Pipeline[Input, Prediction], Generic[Input, Example, Prediction]):
    """Predicts for the task that the model was fine-tuned for.

    A call with one input in the task's format (a text, a tuple or a mapping) returns a prediction;
    a call with a list, a list.

    Attributes:
        task: the model's task.
        loaded: what the model reads, with its tokenizer.
        engine: computes the model.
        options: what a prediction gives; those of multiple choice have none.
        metrics: of the held-out examples, if `bertkit finetune` wrote the model; else empty.
    """

    task: Task[Example, Prediction]
    loaded: LoadedModel
    engine: Engine
    options: Settings = field(default_factory=Settings)
    metrics: Mapping[str, float] = field(default_factory=dict)

    task_kind: ClassVar[type[AnyTask] | None] = None  # None for any task
    noun = "input"

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load a model of `bertkit finetune`, or one fine-tuned with another tool.

        It is a `CheckpointError` if it has no task, another one, or fewer positions than its
        max_length.
        """
        task = load_task(opened.folder, opened.config, opened.architecture)
        if cls.task_kind is not None and not isinstance(task, cls.task_kind):
            raise CheckpointError(
                f"{opened.folder} is a model for the task {task.name}, not"
                f" {cls.task_kind.name}; load it with Predictor, or use `bertkit {task.name}`"
            )
        if isinstance(task, Embed):
            raise CheckpointError(
                f"{opened.folder} is an encoder of texts, which predicts nothing; load it with"
                " Embedder, or use `bertkit embed`"
            )
        limit = opened.config.max_length
        if task.settings.max_length > limit:
            raise CheckpointError(
                f"{opened.folder}: the task's max_length is {task.settings.max_length:,}, and"
                f" the model takes at most {limit:,} tokens; its files don't belong together"
            )
        is_own = opened.architecture == FEATURE_BASED
        architecture = FEATURE_BASED if is_own else task.architecture
        layers = find_head_layers(opened) if is_own else (-1,)
        engine = open_engine(opened, loading, architecture, layers)
        options = TASKS[task.name].answers()
        return cls(task, LoadedModel.of(opened), engine, options, read_metrics(opened.folder))

    @property
    def most_tokens(self) -> int:
        """The most tokens that the task reads of an input."""
        return self.task.settings.most_tokens

    def _repr_html_(self) -> str:
        """Show task, labels and metrics in a notebook."""
        labels = f": {name_labels(self.task.labels)}" if self.task.labels else ""
        return show_metrics(f"{type(self).__name__}{labels}", self.metrics)

    def warm_up(self) -> None:
        """Predict two inputs of the task."""
        self(list(self.task.samples))

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options, which are those of the task, too."""
        changed = super().change(changes)
        if (
            does_explain(changed.options)
            and isinstance(self.task, Tag)
            and self.task.scheme is None
        ):
            raise SettingsError(
                "explain is for entities, and this model's tags mark none; leave it out"
            )
        of_task = changed.options.model_dump(exclude={"explain"})
        return replace(changed, task=replace(self.task, **of_task))

    def accept(self, named: NamedInput) -> Example:
        """Return an example of the task for an input."""
        return self.task.make_example(named.value, named.name)

    def stream_examples(
        self, examples: Iterable[Example], counts: PredictionCounts | None = None
    ) -> Iterator[tuple[Example, Prediction]]:
        """Yield examples with their predictions, in order and in bounded memory.

        Args:
            examples: read a window at a time.
            counts: updated before the predictions of each window are yielded.
        """
        for window in self.stream_windows(examples, counts):
            yield from zip(window.encoded.examples, self.decode_window(*window), strict=True)

    def encode_window(self, inputs: list[Example]) -> EncodedExamples[Example]:
        """Return examples with their token ids."""
        encoded = self.task.encode(inputs, self.loaded.tokenizer)
        sequences = (sequence for one in encoded for sequence in one.sequences)
        num_segments = self.loaded.config.type_vocab_size
        if num_segments == 1 and any(1 in sequence.segments for sequence in sequences):
            self.loaded.check_pairs()
        return EncodedExamples(inputs, encoded)

    def divide(self, encoded: EncodedExamples[Example]) -> Iterator[EncodedExamples[Example]]:
        """Divide a window of examples if labels are very many."""
        for part in cut_by_scores(encoded.encoded, len(self.task.labels), scored=self.task.scored):
            chosen = slice(part.start, part.stop)
            yield EncodedExamples(encoded.examples[chosen], encoded.encoded[chosen])

    def compute_window(self, encoded: EncodedExamples[Example]) -> list[Logits]:
        """Compute the logits of examples, as in `compute_logits`."""
        return compute_logits(
            self._compute,
            encoded.encoded,
            scored=self.task.scored,
            tokens_per_batch=self.engine.tokens_per_batch,
        )

    def _compute_logits(self, encoded: Sequence[Encoded]) -> Iterator[Logits]:
        for part in self.divide(EncodedExamples([], [*encoded])):
            yield from self.compute_window(part)

    def decode_window(
        self, encoded: EncodedExamples[Example], computed: Sequence[Logits]
    ) -> Iterator[Prediction]:
        """Decode the examples of a window, and explain the predictions if that is asked for."""
        tokenizer = self.loaded.tokenizer
        for example, one, logits in zip(*encoded, computed, strict=True):
            found = self.task.decode(example, one, logits)
            if does_explain(self.options):
                read = ReadInput.of(self.task, tokenizer, example, one)
                explainer = Explainer(
                    self.task, tokenizer, self.engine, self._compute_logits, read, logits
                )
                found = replace(found, explanations=explainer.explain(found))
            yield found

    def count(self, encoded: EncodedExamples[Example], computed: object = None) -> PredictionCounts:
        """Count the examples of a window."""
        rows, tokenizer = encoded.encoded, self.loaded.tokenizer
        special = tokenizer.frame_ids
        text_tokens = [one.num_tokens - sum(map(one.count, special)) for one in rows]
        unknown = [one.count(tokenizer.unk_id) for one in rows]
        return PredictionCounts(
            inputs=len(rows),
            tokens=sum(one.num_tokens for one in rows),
            text_tokens=sum(text_tokens),
            unknown_tokens=sum(unknown),
            empty=text_tokens.count(0),
            unknown_only=sum(map(is_unknown, unknown, text_tokens)),
            truncated=sum(one.is_cut for one in rows),
            windowed=sum(self.task.has_windows and len(one.sequences) > 1 for one in rows),
        )

    def _compute(self, ids: PackedIds) -> npt.NDArray[np.float32]:
        """Compute the logits of a batch."""
        scores = self.engine.logits(ids)
        check_finite(scores, "the model's logits")
        return scores


def find_head_layers(opened: OpenModel) -> tuple[int, ...]:
    """Return the layers that a head of bertkit's own reads; CheckpointError if it isn't one."""
    try:
        return LAYERS[read_feature_head(opened.config).layers]
    except SettingsError as error:
        raise CheckpointError(f"{opened.folder}: {error}") from None


AnyPredictor: TypeAlias = Predictor[Any, Any, Any]


class Classifier(Predictor[str | tuple[str, str], ClassifyExample, Classification]):
    """Classifies texts, or pairs of texts.

    A call with a text or a tuple of two returns a `Classification`; a call with a list, a list.
    With `top_k` it has the probabilities of that many likeliest labels, best first.

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
