"""Functions of fine-tuned models: predict, and evaluate, which also takes pre-trained ones."""

from functools import partial
from pathlib import Path
from typing import Any, cast, overload

from bertkit.api.inputs import are_tuples, hold_rows
from bertkit.api.settings import Call, check_names, takes, takes_any
from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings, select
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.inference.predictor import Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.inference.text_scorer import PairsResult, TextScorer, judge_pairs
from bertkit.jobs.predict import answer_file, answer_values
from bertkit.jobs.settings import PredictSettings
from bertkit.recipes.evaluate.held_out import HeldOutResult, evaluate_held_out
from bertkit.recipes.evaluate.run import EvaluateResult
from bertkit.recipes.evaluate.run import evaluate as run_evaluate
from bertkit.recipes.settings import EvaluateSettings
from bertkit.reports.notebook import ResultList
from bertkit.tasks.classify import ClassifyAnswers

Model = str | Path | Predictor[Any, Any, Any]


class TaskColumns(Settings):
    """The columns of all tasks."""

    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None
    words_column: str | None = None
    tags_column: str | None = None
    question_column: str | None = None
    context_column: str | None = None
    answers_column: str | None = None
    choices_column: str | None = None


class PredictCall(TaskColumns, PredictSettings, ClassifyAnswers, EngineSettings, Call):
    """The keyword arguments of `predict`."""


@takes(PredictCall)
def predict(call: PredictCall, model: Model, data: Table) -> list[Any]:
    """Predict the rows of a file, a data frame or a list; prediction n belongs to row n.

    Args:
        model: a fine-tuned model, its folder, or the id of a model of the Hub.
        data: rows, with or without labels, or a file by name. A tuple is an input as the model's
            predictor takes it: a pair of texts, or the words of one.

    Further keyword arguments: fields of `EngineSettings` and `PredictSettings`, names of columns
    that differ from those of the training data, and for classifiers `top_k`.

    Returns:
        Predictions, such as `Classification`, as the model's predictor returns them.

    Raises:
        InputError: a row can't be read, or columns are missing.
        BertkitError: the model can't be loaded.
    """
    predictor: Predictor[Any, Any, Any]
    predictor = Predictor.take(model, select(EngineSettings, call))
    options_kind = type(predictor.options)
    answers = call.model_fields_set & ClassifyAnswers.model_fields.keys()
    check_names(answers, options_kind.model_fields, "predict")
    predictor = predictor.with_options(select(options_kind, call))
    chosen, columns = select(PredictSettings, call), select(TaskColumns, call)
    rows = cast("Table", hold_rows(data))
    if are_tuples(rows):
        refuse_columns(call)
        check_tuples(predictor, rows)
        answered = answer_values(predictor, cast("list[Any]", rows))
    else:
        answered = answer_file(predictor, rows, chosen, columns)
    with show_progress("Predicting", None) as progress:
        found = ResultList(row.prediction for row in answered.read(progress))
    announce_unknown(answered.counts.unknown_tokens, answered.counts.text_tokens)
    return found


def refuse_columns(call: PredictCall) -> None:
    """Refuse what says how tables are read, such as names of columns, which tuples haven't got."""
    known = TaskColumns.model_fields.keys() | PredictSettings.model_fields.keys()
    for name in sorted(call.model_fields_set & known):
        if getattr(call, name) is not None:
            raise SettingsError(
                f"{name} is for rows with columns, and the rows are tuples; leave it out, or give"
                " mappings"
            )


def check_tuples(predictor: Predictor[Any, Any, Any], rows: object) -> None:
    """Refuse pairs of texts, or texts with a label, if the model reads single texts."""
    if getattr(predictor.task.settings, "pairs", None) is False:
        raise InputError(
            "a tuple is one input here, a pair of texts, and the model reads single texts; leave"
            " out labels, or give mappings with the key text"
        )


class EvaluateCall(TaskColumns, EvaluateSettings, EngineSettings, Call):
    """The keyword arguments of an evaluation on labeled data."""


class MinimalPairsCall(RecordSettings, EngineSettings, Call):
    """The keyword arguments of an evaluation on minimal pairs."""

    minimal_pairs: str | Path


class HeldOutCall(Call):
    """The keyword arguments of an evaluation on held-out text."""

    held_out: str | Path
    device: str = "auto"
    revision: str | None = None


class AnyEvaluateCall(EvaluateCall):
    """The keyword arguments of all three evaluations."""

    minimal_pairs: str | Path | None = None
    held_out: str | Path | None = None


@overload
@takes(EvaluateCall)
def evaluate(call: EvaluateCall, model: Model, data: Table) -> EvaluateResult: ...


@overload
@takes(MinimalPairsCall)
def evaluate(call: MinimalPairsCall, model: str | Path) -> PairsResult: ...


@overload
@takes(HeldOutCall)
def evaluate(call: HeldOutCall, model: str | Path) -> HeldOutResult: ...


@takes_any(AnyEvaluateCall)
def evaluate(
    call: AnyEvaluateCall, model: Model, data: Table | None = None
) -> EvaluateResult | PairsResult | HeldOutResult:
    """Evaluate a model on labeled data, on minimal pairs or on held-out text.

    Args:
        model: a fine-tuned model, its folder, or, for text, a pre-trained one.
        data: labeled rows, or a file by name.
        minimal_pairs: a file of pairs, as `bertkit evaluate --minimal-pairs` reads it.
        held_out: a folder of shards with held-out text.

    Further keyword arguments: fields of `EngineSettings` and `EvaluateSettings`, and names of
    columns that differ from those of the training data.

    Returns:
        The result; that of labeled data has `metrics` and `evaluation`.

    Raises:
        SettingsError: not exactly one of data, minimal pairs and held-out text is given.
        BertkitError: as in `bertkit.recipes.evaluate.run.evaluate`.
    """
    if sum(each is not None for each in (data, call.minimal_pairs, call.held_out)) != 1:
        raise SettingsError("give one of: labeled data, minimal_pairs, held_out")
    loading = select(EngineSettings, call)
    if data is not None:
        load = partial(Predictor.take, model, loading)
        rows, chosen = cast("Table", hold_rows(data)), select(EvaluateSettings, call)
        name = None if isinstance(model, Predictor) else str(model)
        return run_evaluate(load, rows, chosen, select(TaskColumns, call), name)
    if isinstance(model, Predictor):
        raise SettingsError("minimal pairs and held-out text are for pre-trained models; name one")
    if call.minimal_pairs is not None:
        _refuse_others(call, MinimalPairsCall, "minimal pairs are scored")
        scorer = TextScorer.take(model, loading)
        return judge_pairs(scorer, str(call.minimal_pairs), select(RecordSettings, call))
    _refuse_others(call, HeldOutCall, "held-out text is evaluated as in training")
    shards = Path(cast("str", call.held_out))
    return evaluate_held_out(str(model), shards, loading.device, revision=loading.revision)


def _refuse_others(call: AnyEvaluateCall, kind: type[Call], what: str) -> None:
    """Raise SettingsError for keywords that only another evaluation has."""
    fields = type(call).model_fields
    others = [
        name
        for name in sorted(call.model_fields_set - kind.model_fields.keys())
        if getattr(call, name) != fields[name].default
    ]
    if others:
        raise SettingsError(f"{what}: no {', '.join(others)}")
