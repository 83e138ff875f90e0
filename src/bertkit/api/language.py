"""Functions of models that predict or write words: one text gives one result, a list a list."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import GenericAlias
from typing import Any, Protocol, TypeVar, cast, get_args, overload

from pydantic import SkipValidation

from bertkit.api.inputs import SeveralTexts, take_texts
from bertkit.api.kept import take_object
from bertkit.api.settings import AnyCall, Call, Keywords, TextsCall, takes, takes_any
from bertkit.base.settings import Settings, select
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.inference.text_scorer import TextScore, TextScorer

AnyPipeline = TypeVar("AnyPipeline", bound=Pipeline[Any, Any])
Result = TypeVar("Result")


class OfTexts(Protocol[Keywords, Result]):
    """A function of one text, which gives its result, or of several, which gives a list."""

    @overload
    def __call__(
        self, texts: str, /, *arguments: Keywords.args, **values: Keywords.kwargs
    ) -> Result: ...

    @overload
    def __call__(
        self, texts: SeveralTexts, /, *arguments: Keywords.args, **values: Keywords.kwargs
    ) -> list[Result]: ...


def takes_texts(
    kind: Callable[Keywords, AnyCall],
    read: Callable[[str | SeveralTexts, TableSettings], list[str]] = take_texts,
) -> Callable[[Callable[[AnyCall], Pipeline[str, Result]]], OfTexts[Keywords, Result]]:
    """Apply the pipeline that a function prepares for a call to one text or several."""

    def decorate(prepare: Callable[[AnyCall], Pipeline[str, Result]]) -> OfTexts[Keywords, Result]:
        @wraps(prepare)
        def apply(call: AnyCall, texts: str | SeveralTexts) -> Result | list[Result]:
            pipeline = prepare(call)
            given = read(texts, select(TableSettings, call))
            return pipeline(given[0]) if isinstance(texts, str) else pipeline(given)

        _, result = get_args(prepare.__annotations__["return"])
        shown = {"texts": str | SeveralTexts, "return": result | GenericAlias(list, result)}
        apply.__annotations__ = prepare.__annotations__ | shown
        return cast("OfTexts[Keywords, Result]", takes_any(cast("type[AnyCall]", kind))(apply))

    return decorate


class FillMaskCall(FillOptions, EngineSettings, TextsCall):
    """The keyword arguments of `fill_mask`."""

    model: SkipValidation[str | Path | FillMask | None] = None


@takes_texts(FillMaskCall)
def fill_mask(call: FillMaskCall) -> Pipeline[str, FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `FillOptions` (`top_k`, `targets`) and `EngineSettings`.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    return load_pipeline(FillMask, call.model, call, FillOptions)


class NextSentenceCall(EngineSettings, Call):
    """The keyword arguments of `next_sentence`."""

    model: SkipValidation[str | Path | NextSentence | None] = None


@takes(NextSentenceCall)
def next_sentence(call: NextSentenceCall, first: str, second: str) -> float:
    """Compute the probability that the second text follows the first.

    Args:
        first: a text.
        second: another.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `NextSentence`; by default the model that comes with bertkit.

    Further keyword arguments: fields of `EngineSettings`.

    Raises:
        BertkitError: as in `NextSentence.load` and `NextSentence.__call__`.

    Examples:
        >>> 0 < bertkit.next_sentence("She opened the door.", "The room was dark.") < 1
        True
    """
    return load_pipeline(NextSentence, call.model, call)((first, second))


class ScoreCall(EngineSettings, TextsCall):
    """The keyword arguments of `score`."""

    model: SkipValidation[str | Path | TextScorer | None] = None


@takes_texts(ScoreCall)
def score(call: ScoreCall) -> Pipeline[str, TextScore]:
    """Score how likely a language model finds texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `EngineSettings`.

    Returns:
        A `TextScore` with `log_probability` and `perplexity`; for several texts, a list.

    Raises:
        BertkitError: as in `TextScorer.load` and `TextScorer.stream`.

    Examples:
        >>> right, wrong = bertkit.score(["The cats are asleep.", "The cats is asleep."])
        >>> right.log_probability > wrong.log_probability
        True
    """
    return load_pipeline(TextScorer, call.model, call)


def load_pipeline(
    kind: type[AnyPipeline],
    model: str | Path | AnyPipeline | None,
    call: Call,
    options_kind: type[Settings] = Settings,
) -> AnyPipeline:
    """Load a pipeline, or take that of the last call, with the settings of a call."""
    pipeline = take_object(kind, model, select(kind.loading_kind, call))
    return pipeline.with_options(select(options_kind, call))
