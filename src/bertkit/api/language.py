"""Functions of models that predict words: one text gives one result, a list a list."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from pydantic import SkipValidation

from bertkit.api.inputs import SeveralTexts, read_texts
from bertkit.api.settings import Call, TextsCall, takes, takes_any
from bertkit.base.errors import SettingsError
from bertkit.base.settings import Settings, select
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.inference.text_scorer import PairsResult, TextScore, TextScorer, judge_pairs
from bertkit.recipes.pretrain.held_out import HeldOutResult, evaluate_held_out

AnyPipeline = TypeVar("AnyPipeline", bound=Pipeline[Any, Any])
Result = TypeVar("Result")


class FillMaskCall(FillOptions, EngineSettings, TextsCall):
    """The keyword arguments of `fill_mask`."""

    model: SkipValidation[str | Path | FillMask | None] = None


@overload
@takes(FillMaskCall)
def fill_mask(call: FillMaskCall, texts: str) -> FilledText: ...


@overload
@takes(FillMaskCall)
def fill_mask(call: FillMaskCall, texts: SeveralTexts) -> list[FilledText]: ...


@takes(FillMaskCall)
def fill_mask(call: FillMaskCall, texts: str | SeveralTexts) -> FilledText | list[FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `FillOptions` (`top_k`, `targets`), `TableSettings` and
    `EngineSettings`.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    return apply(load_pipeline(FillMask, call.model, call, FillOptions), texts, call)


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
    """The keyword arguments of a score of texts."""

    model: SkipValidation[str | Path | TextScorer | None] = None


class ScorePairsCall(TableSettings, EngineSettings, Call):
    """The keyword arguments of a score of minimal pairs."""

    minimal_pairs: str | Path
    model: SkipValidation[str | Path | TextScorer | None] = None


class ScoreHeldOutCall(Call):
    """The keyword arguments of a score of held-out text."""

    data: str | Path
    model: str | Path
    device: str = "auto"
    revision: str | None = None


class AnyScoreCall(ScoreCall):
    """The keyword arguments of all three."""

    minimal_pairs: str | Path | None = None
    data: str | Path | None = None


@overload
@takes(ScoreCall)
def score(call: ScoreCall, texts: str) -> TextScore: ...


@overload
@takes(ScoreCall)
def score(call: ScoreCall, texts: SeveralTexts) -> list[TextScore]: ...


@overload
@takes(ScorePairsCall)
def score(call: ScorePairsCall) -> PairsResult: ...


@overload
@takes(ScoreHeldOutCall)
def score(call: ScoreHeldOutCall) -> HeldOutResult: ...


@takes_any(AnyScoreCall)
def score(
    call: AnyScoreCall, texts: str | SeveralTexts | None = None
) -> TextScore | list[TextScore] | PairsResult | HeldOutResult:
    """Score how likely a language model finds texts, minimal pairs, or held-out text.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        minimal_pairs: a file of pairs, as `bertkit score --minimal-pairs` reads it.
        data: a folder of `bertkit prepare` with held-out text.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit. Held-out text needs the
            name of a model.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `TableSettings` and `EngineSettings`.

    Returns:
        A `TextScore` with `log_probability` and `perplexity`; for several texts, a list.

    Raises:
        SettingsError: not exactly one of texts, minimal pairs and held-out text is given.
        BertkitError: as in `TextScorer.load` and `TextScorer.stream`.

    Examples:
        >>> right, wrong = bertkit.score(["The cats are asleep.", "The cats is asleep."])
        >>> right.log_probability > wrong.log_probability
        True
    """
    if sum(each is not None for each in (texts, call.minimal_pairs, call.data)) != 1:
        raise SettingsError("give one of: texts, minimal_pairs, data")
    if texts is not None:
        _refuse_others(call, ScoreCall, "texts are scored")
        return apply(load_pipeline(TextScorer, call.model, call), texts, call)
    if call.minimal_pairs is not None:
        _refuse_others(call, ScorePairsCall, "minimal pairs are scored")
        scorer = load_pipeline(TextScorer, call.model, call)
        return judge_pairs(scorer, str(call.minimal_pairs), select(TableSettings, call))
    _refuse_others(call, ScoreHeldOutCall, "held-out text is predicted as in training")
    if not isinstance(call.model, str | Path):
        raise SettingsError("held-out text is predicted by a model that is named")
    data = Path(cast("str", call.data))
    return evaluate_held_out(str(call.model), data, call.device, revision=call.revision)


def _refuse_others(call: AnyScoreCall, kind: type[Call], what: str) -> None:
    """Raise SettingsError for keywords that only another score has."""
    fields = type(call).model_fields
    others = [
        name
        for name in sorted(call.model_fields_set - kind.model_fields.keys())
        if getattr(call, name) != fields[name].default
    ]
    if others:
        raise SettingsError(f"{what}: no {', '.join(others)}")


def load_pipeline(
    kind: type[AnyPipeline],
    model: str | Path | AnyPipeline | None,
    call: Call,
    options_kind: type[Settings] = Settings,
) -> AnyPipeline:
    """Load a pipeline, or take that of the last call, with the settings of a call."""
    pipeline = kind.take(model, select(kind.loading_kind, call))
    return pipeline.with_options(select(options_kind, call))


def apply(
    pipeline: Pipeline[str, Result],
    texts: str | SeveralTexts,
    call: Call,
    read: Callable[[SeveralTexts, TableSettings], list[str]] = read_texts,
) -> Result | list[Result]:
    """Apply a pipeline to one text, which gives its result, or to several, which give a list."""
    if isinstance(texts, str):
        return pipeline(texts)
    return pipeline(read(texts, select(TableSettings, call)))
