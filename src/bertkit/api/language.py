"""Functions of models that predict words: one text gives one result, a list a list."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack, overload

from bertkit.api.inputs import SeveralTexts, read_texts
from bertkit.api.settings import build, takes
from bertkit.base.errors import SettingsError
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.minimal_pairs import PairsResult, judge_pairs
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.inference.text_scorer import TextScore, TextScorer

if TYPE_CHECKING:
    from bertkit.api.keywords import FillMaskKeywords, NextSentenceKeywords, ScoreKeywords
    from bertkit.recipes.pretrain.held_out import HeldOutResult

Result = TypeVar("Result")
FillMaskModel = str | Path | FillMask | None
ScoreModel = str | Path | TextScorer | None


@overload
def fill_mask(
    texts: str, *, model: FillMaskModel = None, **settings: "Unpack[FillMaskKeywords]"
) -> FilledText: ...


@overload
def fill_mask(
    texts: SeveralTexts, *, model: FillMaskModel = None, **settings: "Unpack[FillMaskKeywords]"
) -> list[FilledText]: ...


@takes(FillOptions, EngineSettings, TableSettings)
def fill_mask(
    texts: str | SeveralTexts,
    *,
    model: FillMaskModel = None,
    **settings: "Unpack[FillMaskKeywords]",
) -> FilledText | list[FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.

    Further keyword arguments: fields of `FillOptions` (`top_k`, `targets`), of `EngineSettings`,
    and of `TableSettings`, which say how to read the texts.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    options, reading = build(FillOptions, settings), build(TableSettings, settings)
    fill = FillMask.take(model, build(EngineSettings, settings)).with_options(options)
    return apply(fill, texts, reading)


@takes(EngineSettings)
def next_sentence(
    first: str,
    second: str,
    *,
    model: str | Path | NextSentence | None = None,
    **settings: "Unpack[NextSentenceKeywords]",
) -> float:
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
    return NextSentence.take(model, build(EngineSettings, settings))((first, second))


@overload
def score(
    texts: str, *, model: ScoreModel = None, **settings: "Unpack[ScoreKeywords]"
) -> TextScore: ...


@overload
def score(
    texts: SeveralTexts, *, model: ScoreModel = None, **settings: "Unpack[ScoreKeywords]"
) -> list[TextScore]: ...


@overload
def score(
    *, minimal_pairs: str | Path, model: ScoreModel = None, **settings: "Unpack[ScoreKeywords]"
) -> PairsResult: ...


@overload
def score(
    *, data: str | Path, model: str | Path, device: str = "auto", revision: str | None = None
) -> "HeldOutResult": ...


@takes(EngineSettings, TableSettings)
def score(
    texts: str | SeveralTexts | None = None,
    *,
    minimal_pairs: str | Path | None = None,
    data: str | Path | None = None,
    model: ScoreModel = None,
    **settings: "Unpack[ScoreKeywords]",
) -> "TextScore | list[TextScore] | PairsResult | HeldOutResult":
    """Score how likely a language model finds texts, minimal pairs, or held-out text.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        minimal_pairs: a file of pairs, as `bertkit score --minimal-pairs` reads it.
        data: a folder of `bertkit prepare` with held-out text.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit. Held-out text needs the
            name of a model.

    Further keyword arguments: fields of `EngineSettings`, and of `TableSettings`, which say how to
    read the texts; for held-out text `device` and `revision`.

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
    if sum(each is not None for each in (texts, minimal_pairs, data)) != 1:
        raise SettingsError("give one of: texts, minimal_pairs, data")
    loading, reading = build(EngineSettings, settings), build(TableSettings, settings)
    if data is None:
        load = partial(TextScorer.take, model, loading)
        if texts is not None:
            return apply(load(), texts, reading)
        return judge_pairs(load, str(minimal_pairs), reading)
    if others := sorted(settings.keys() - {"device", "revision"}):
        raise SettingsError(f"held-out text is predicted as in training: no {', '.join(others)}")
    if not isinstance(model, str | Path):
        raise SettingsError("held-out text is predicted by a model that is named")
    from bertkit.recipes.pretrain.held_out import evaluate_held_out

    return evaluate_held_out(str(model), Path(data), loading.device, revision=loading.revision)


def apply(
    pipeline: Pipeline[str, Result],
    texts: str | SeveralTexts,
    reading: TableSettings,
    read: Callable[[SeveralTexts, TableSettings], list[str]] = read_texts,
) -> Result | list[Result]:
    """Apply a pipeline to one text, which gives its result, or to several, which give a list."""
    return pipeline(texts if isinstance(texts, str) else read(texts, reading))
