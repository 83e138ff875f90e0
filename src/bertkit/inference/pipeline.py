"""What everything that turns texts into results has in common: loading, calling, streaming."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import Field, dataclass, field, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, overload

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.settings import Settings, select
from bertkit.checkpoints.bundled import Part
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.engines.engine import Engine
from bertkit.inference.kept import LAST_LOADED
from bertkit.inference.loading import LoadedModel
from bertkit.inference.settings import (
    EngineName,
    EngineSettings,
    LoadingSettings,
    PrecisionName,
    take_settings,
)
from bertkit.inference.stream import InputCounts, TextCounts, cut_windows, encode_ahead
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import plan_batches
from bertkit.reports.notebook import ResultList
from bertkit.tokenization.tokenizer import check_texts

Input = TypeVar("Input")
Result = TypeVar("Result")
Answer = TypeVar("Answer")

SAMPLES = ("a", "a b")
ONE_INPUT = (str, bytes, tuple, Mapping)  # bytes are refused as a whole, not number by number


@dataclass(frozen=True)
class NamedInput:
    """An input with its name in error messages, such as line 3 of a file."""

    name: str
    value: Any
    number: int = 0  # its place among all inputs, from 0

    @property
    def num_chars(self) -> int:
        """The characters of a text or of several; of token ids, their number."""
        if isinstance(self.value, str):
            return len(self.value)
        return sum(len(part) if isinstance(part, str) else 1 for part in self.value)


class Window(NamedTuple):
    """Some thousands of inputs: as they were encoded, and what the model computed for them."""

    encoded: Any
    computed: Any


class Loadable(ABC):
    """What is loaded from a model."""

    bundled: ClassVar[Part | None] = None  # the weights that are loaded if no model is named
    loading_kind: ClassVar[type[LoadingSettings]] = EngineSettings

    @classmethod
    def load(
        cls,
        model: str | Path | OpenModel | None = None,
        settings: Settings | None = None,
        *,
        device: str = "auto",
        precision: PrecisionName = "auto",
        engine: EngineName = "auto",
        revision: str | None = None,
        **more: Any,
    ) -> Self:
        """Load a model.

        Args:
            model: a folder of any format, a run, or the id of a model of the Hub; by default the
                model that comes with bertkit, where that has what is needed.
            settings: what follows as an object of `EngineSettings`, or of the class's own
                settings, such as `EmbedderSettings`.
            device: auto, cpu, cuda or cuda:N.
            precision: of the weights and matrix products: auto, fp32, bf16 or, for encoders, int8.
            engine: the runtime of an encoder: openvino on CPUs, torch on GPUs and for models that
                read left to right; auto selects it.
            revision: a branch, tag or commit of a model of the Hub.
            more: further fields of the class's own settings.

        Raises:
            SettingsError: an argument has a wrong value, or doesn't fit the model.
            MissingExtraError: PyTorch is needed and isn't installed.
            BertkitError: there is no such model, it is damaged, or it lacks what is needed.
        """
        kind, name = cls.loading_kind, f"{cls.__name__}.load"
        if not isinstance(settings, Settings | None):
            raise SettingsError(f"{name}: settings are {kind.__name__}, and not {settings!r:.40}")
        values = {"device": device, "precision": precision, "engine": engine, "revision": revision}
        asked, usual = take_settings(EngineSettings, values, name), EngineSettings()
        changes = {key: value for key, value in asked if value != getattr(usual, key)}
        if "engine" not in kind.model_fields and changes.pop("engine", "torch") != "torch":
            raise SettingsError(
                f"the engine openvino is for encoders, and {cls.__name__} takes the whole"
                " model; use torch"
            )
        own = {} if settings is None else dict(select(kind, settings))
        loading = take_settings(kind, own | changes | more, name)
        return cls.build(cls.find(model, loading.revision), loading)

    @classmethod
    def find(cls, model: str | Path | OpenModel | None, revision: str | None = None) -> OpenModel:
        """Open a model, or the one that comes with bertkit, if it has one of this kind."""
        if model is None and cls.bundled is None:
            raise SettingsError(f"{cls.__name__} comes without a model; name one")
        return OpenModel.open(model, revision=revision, bundled=cls.bundled)

    @classmethod
    def take(cls, model: str | Path | OpenModel | Self | None, loading: LoadingSettings) -> Self:
        """Return a loaded model as it is; load another, or take that of the last call."""
        if isinstance(model, cls):
            usual = type(loading)()
            given = [name for name, value in loading if value != getattr(usual, name)]
            if given:
                raise SettingsError(
                    f"a loaded {cls.__name__} has its {' and '.join(given)}; give that to"
                    f" {cls.__name__}.load"
                )
            return model
        named = cast("str | Path | OpenModel | None", model)
        folder = cls.find(named, None if isinstance(named, OpenModel) else loading.revision).path
        return LAST_LOADED.take(cls.load, [folder], loading.model_copy(update={"revision": None}))

    @classmethod
    @abstractmethod
    def build(cls, opened: OpenModel, loading: Any) -> Self:
        """Load an open model."""


class Pipeline(Loadable, Generic[Input, Result]):
    """A model with all that it takes to turn an input into a result.

    `load` opens a model. A call with one input returns its result, a call with a list of inputs the
    list of their results, and `stream` yields the results of any number of inputs. A list, an array
    or an iterator holds several inputs; a text, a tuple and a mapping are one. Options of a call,
    by name, are fields of the class's options.

    A subclass is a dataclass, and says what happens to an input (`accept`) and to a window of them:
    `encode_window` in a thread ahead, `compute_window` by the model, `decode_window` into results.

    Attributes:
        options: how results are made; a call may change them for itself.
    """

    options: Settings
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    noun: ClassVar[str] = "text"
    window_inputs: ClassVar[int | None] = None  # those of `cut_windows`
    window_chars: ClassVar[int | None] = None

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that are read of an input; None for as many as the model takes."""
        return None

    def accept(self, named: NamedInput) -> Any:
        """Return what is encoded of an input; InputError if it is of the wrong type."""
        check_texts([named.value])
        return named

    @abstractmethod
    def encode_window(self, inputs: list[Any]) -> Any:
        """Encode a window of inputs, as `accept` gives them."""

    def divide(self, encoded: Any) -> Iterable[Any]:
        """Divide an encoded window into parts whose results fit in memory."""
        return [encoded]

    @abstractmethod
    def compute_window(self, encoded: Any) -> Any:
        """Run the model on an encoded window."""

    def decode_window(self, encoded: Any, computed: Any) -> Iterable[Result]:
        """Make the results of a window, one for each input; by default what was computed."""
        results: Iterable[Result] = computed
        return results

    def count(self, encoded: Any, computed: Any = None) -> InputCounts:
        """Return the statistics of an encoded window, or of one that was computed."""
        return InputCounts()

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Return the pipeline with some of its options changed; errors as in `with_options`."""
        values = {**dict(self.options), **changes}
        options = take_settings(type(self.options), values, type(self).__name__)
        return replace(self, options=options)

    def warm_up(self) -> None:
        """Compute inputs of two lengths, on which an engine starts all its threads.

        Then the first call is fast, and a model that can't compute fails.
        """
        samples: list[Any] = [*SAMPLES]
        self(samples)

    @overload
    def __call__(self, inputs: list[Input], /, **options: Any) -> list[Result]: ...

    @overload
    def __call__(self, inputs: Input, /, **options: Any) -> Result: ...

    def __call__(self, inputs: Input | list[Input], /, **options: Any) -> Result | list[Result]:
        """Return the result of one input, or the list of the results of several.

        Args:
            inputs: one input; or a list, an array, or another iterable of several.
            options: options that differ from the pipeline's own.

        Raises:
            SettingsError: there is no such option, or it has a wrong value.
            InputError: an input is of the wrong type, or can't be processed.
            NonFiniteError: the model's numbers aren't finite.
        """
        ready = self.with_options(**options)
        if is_several(inputs):
            return ResultList(ready.stream(cast("Iterable[Input]", inputs)))
        return ready.process_one(cast("Input", inputs))

    def process_one(self, value: Input) -> Result:
        """Return the result of one input, without a thread."""
        encoded = self.encode_window(list(self.read([NamedInput(f"the {self.noun}", value)])))
        (result,) = self.decode_window(encoded, self.compute_window(encoded))
        return result

    def stream(
        self,
        inputs: Iterable[Input | NamedInput],
        /,
        *,
        counts: InputCounts | None = None,
        **options: Any,
    ) -> Iterator[Result]:
        """Yield the results of any number of inputs, in their order and in bounded memory.

        Args:
            inputs: read some thousands ahead.
            counts: statistics of the inputs, updated before the results of a window are yielded.
            options: as in a call.

        Raises:
            BertkitError: as in a call; that of an input comes after the results before it.
        """
        check_several(inputs, self.noun)
        ready = self.with_options(**options)
        windows = ready.stream_windows(ready.read(inputs), counts)
        return (result for window in windows for result in ready.decode_window(*window))

    def stream_windows(
        self, inputs: Iterable[Any], counts: InputCounts | None = None
    ) -> Iterator[Window]:
        """Yield the windows of inputs that `read` gave, before they are decoded."""
        measure = attrgetter("num_chars")
        windows = cut_windows(inputs, measure, self.window_chars, self.window_inputs)
        for encoded, error in encode_ahead(windows, self._try_window):
            for part in () if encoded is None else self.divide(encoded):
                window = Window(part, self.compute_window(part))
                if counts is not None:
                    counts.add(self.count(*window))
                yield window
            if error is not None:
                raise error

    def with_options(self, settings: Settings | None = None, /, **options: Any) -> Self:
        """Return the pipeline with other options; those that aren't given stay.

        Args:
            settings: options as an object, of which the fields that were set count.
            options: options by name.

        Raises:
            SettingsError: there is no such option, or it has a wrong value.
        """
        if settings is not None:
            options = {name: getattr(settings, name) for name in settings.model_fields_set}
        return self.change(options) if options else self

    def read(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Yield what is encoded of each input, with its number and a name unless it has one."""
        for number, value in enumerate(inputs):
            name = f"{self.noun} {number + 1}"
            if isinstance(value, NamedInput):
                name, value = value.name, value.value
            yield self.accept(NamedInput(name, value, number))

    def _try_window(self, inputs: list[Any]) -> tuple[Any, InputError | None]:
        """Encode the inputs up to the first that can't be, and return its error if there is one."""
        try:
            return self.encode_window(inputs), None
        except InputError as error:
            if len(inputs) == 1:
                return None, error
            for number, one in enumerate(inputs):
                first = self._try_window([one])[1]
                if first is not None:
                    return (self.encode_window(inputs[:number]) if number else None), first
            raise


@dataclass(frozen=True)
class EncoderPipeline(Pipeline[Input, Result]):
    """A pipeline over an encoder with a head; an engine computes batches of sequences.

    Attributes:
        loaded: what the model reads, with its tokenizer.
        engine: computes the model.
    """

    loaded: LoadedModel
    engine: Engine
    options: Settings = field(default_factory=Settings)

    bundled = "words"
    architecture: ClassVar[str | None] = None  # None for what predicts words

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load any checkpoint that has the head."""
        engine = open_engine(opened, loading, cls.architecture or opened.word_architecture)
        return cls(LoadedModel.of(opened), engine)

    def compute_window(self, encoded: Any) -> list[Any]:
        """Compute what `compute_batch` gives for each of the encoded sequences."""
        budget = self.engine.tokens_per_batch
        return compute_in_batches(encoded, list(map(len, encoded)), budget, self.compute_batch)

    def count(self, encoded: Any, computed: object = None) -> TextCounts:
        """Count a window's sequences, none of which is cut off, and their tokens."""
        return TextCounts(texts=len(encoded), tokens=sum(map(len, encoded)))

    @abstractmethod
    def compute_batch(self, batch: Sequence[Any]) -> Iterable[Any]:
        """Run the model on a batch of sequences, and return what it gives for each."""


def join_windows(windows: Sequence[Any]) -> Any:
    """Join encoded windows, which are lists or have `join`; results keep their order."""
    join = getattr(type(windows[0]), "join", None)
    return join(windows) if join else list(chain.from_iterable(windows))


def compute_in_batches(
    sequences: Sequence[Any],
    lengths: Sequence[int],
    tokens_per_batch: int,
    compute: Callable[[list[Any]], Iterable[Answer]],
) -> list[Answer]:
    """Compute batches of similar lengths, and return what each sequence gives, in their order."""
    found: dict[int, Answer] = {}
    for chosen in plan_batches(lengths, tokens_per_batch):
        answers = compute([sequences[index] for index in chosen])
        found.update(zip(chosen, answers, strict=True))
    return [found[index] for index in range(len(sequences))]


def is_several(inputs: object) -> bool:
    """Whether something holds several inputs; a table or a set, which is neither, is an error."""
    if isinstance(inputs, AbstractSet) or hasattr(inputs, "columns"):
        raise InputError(
            f"expected a list, got {type(inputs).__name__}; the functions of bertkit read data"
            " frames and files"
        )
    is_array = getattr(inputs, "ndim", 1) > 0  # one without dimensions can't be iterated over
    return isinstance(inputs, Iterable) and is_array and not isinstance(inputs, ONE_INPUT)


def check_several(inputs: object, noun: str = "text") -> None:
    """Raise InputError for anything but a list or another iterable of several inputs."""
    if not is_several(inputs):
        is_one = isinstance(inputs, str | tuple | Mapping)
        found = f"one {noun}; put it into a list" if is_one else type(inputs).__name__
        raise InputError(f"expected a list of {noun}s, got {found}")
