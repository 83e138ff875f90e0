"""Functions of fine-tuned models: predict, evaluate, rerank; and classify by labels alone."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from bertkit.api.inputs import SeveralTexts, are_tuples, hold_rows, read_texts, take_texts
from bertkit.api.settings import build, check_names, list_fields, takes
from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings, check_count
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.predictor import AnyPredictor, PredictionCounts, Predictor
from bertkit.inference.reranker import RankedPassage, Reranker
from bertkit.inference.settings import EngineSettings
from bertkit.inference.zero_shot import load_zero_shot
from bertkit.jobs.predict import answer_file, answer_values, open_rows
from bertkit.jobs.settings import PredictSettings
from bertkit.models.open_model import OpenModel
from bertkit.recipes.evaluate import judged_set
from bertkit.recipes.evaluate.pairs import evaluate_pairs, is_encoder
from bertkit.recipes.evaluate.result import EvaluateResult
from bertkit.recipes.evaluate.retrieval import evaluate_retrieval, load_encoder
from bertkit.recipes.evaluate.run import evaluate as run_evaluate
from bertkit.recipes.settings import EvaluateSettings
from bertkit.reports.notebook import ResultList
from bertkit.tasks.classify import ClassifyAnswers, ZeroShotAnswers, ZeroShotSettings
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.zero_shot import read_zero_shot
from bertkit.tasks.saved import find_reading

if TYPE_CHECKING:
    from bertkit.api.keywords import (
        ClassifyKeywords,
        EvaluateKeywords,
        PredictKeywords,
        RerankKeywords,
    )

Model = str | Path | AnyPredictor


class TaskColumns(Settings):
    """The columns of all tasks."""

    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None
    question_column: str | None = None
    context_column: str | None = None
    choices_column: str | None = None


@takes(TaskColumns, PredictSettings, ClassifyAnswers, EngineSettings)
def predict(model: Model, data: Table, **settings: "Unpack[PredictKeywords]") -> list[Any]:
    """Predict the rows of a file, a data frame or a list; prediction n belongs to row n.

    Args:
        model: a fine-tuned model, its folder, or the id of a model of the Hub.
        data: rows, with or without labels, or a file by name. A tuple is an input as the model's
            predictor takes it: a pair of texts, or the words of one.

    Further keyword arguments: fields of `EngineSettings` and `PredictSettings`, names of columns
    that differ from those of the training data, `explain`, and for classifiers `top_k`.

    Returns:
        Predictions, such as `Classification`, as the model's predictor returns them.

    Raises:
        InputError: a row can't be read, or columns are missing.
        BertkitError: the model can't be loaded.
    """
    predictor: AnyPredictor
    chosen, columns = build(PredictSettings, settings), build(TaskColumns, settings)
    rows = hold_rows(data)
    table = None if are_tuples(rows) else open_rows(rows, chosen, find_kept(model))
    if table is None:
        refuse_columns(settings)
    predictor = Predictor.take(model, build(EngineSettings, settings))
    options_kind = type(predictor.options)
    answers = settings.keys() & ClassifyAnswers.model_fields.keys()
    check_names(answers, options_kind.model_fields, "predict")
    predictor = predictor.with_options(build(options_kind, settings))
    if table is None:
        check_tuples(predictor)
        answered = answer_values(predictor, cast("list[Any]", rows))
    else:
        answered = answer_file(predictor, table, chosen, columns)
    with show_progress("Predicting", None) as progress:
        found = ResultList(row.prediction for row in answered.read(progress))
    announce_unknown(answered.counts.unknown_tokens, answered.counts.text_tokens)
    return found


@overload
def classify(
    texts: str,
    *,
    labels: Table | Mapping[str, str],
    template: str | None = None,
    model: str | Path | None = None,
    **settings: "Unpack[ClassifyKeywords]",
) -> Classification: ...


@overload
def classify(
    texts: SeveralTexts,
    *,
    labels: Table | Mapping[str, str],
    template: str | None = None,
    model: str | Path | None = None,
    **settings: "Unpack[ClassifyKeywords]",
) -> list[Classification]: ...


@takes(ZeroShotAnswers, EngineSettings, TableSettings)
def classify(
    texts: str | SeveralTexts,
    *,
    labels: Table | Mapping[str, str],
    template: str | None = None,
    model: str | Path | None = None,
    **settings: "Unpack[ClassifyKeywords]",
) -> Classification | list[Classification]:
    """Classify a text, or each of several, by labels that no model has learned.

    It is a start: a model of `finetune` learns labels from labeled texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        labels: a list of names, or names separated by commas; or, with a description each, a
            mapping, rows or a file with the columns label and description.
        template: the sentence that a label without a description becomes, with {label} in its
            place.
        model: a sentence encoder, any other BERT, or a classifier of pairs that was trained on
            entailment: a folder, or the id of a model of the Hub; by default the model that comes
            with bertkit.

    Further keyword arguments: `top_k`, fields of `EngineSettings`, and of `TableSettings`, which
    say how to read the texts.

    Returns:
        A `Classification` for one text; otherwise a list of them.

    Raises:
        BertkitError: the labels or the texts can't be read, or the model can't be loaded.

    Examples:
        >>> found = bertkit.classify("Where is my parcel?", labels=["billing", "delivery"])
        >>> found.label
        'delivery'
    """
    chosen = build(ZeroShotSettings, {"template": template})
    zero_shot = read_zero_shot(hold_rows(labels), chosen.template)
    rows = take_texts(texts, build(TableSettings, settings))
    predictor = load_zero_shot(zero_shot, model, build(EngineSettings, settings))
    answers = build(ZeroShotAnswers, settings).model_dump(exclude_unset=True)
    counts = PredictionCounts()
    found = ResultList(predictor.stream(rows, counts=counts, **answers))
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the texts")
    return found[0] if isinstance(texts, str) else found


def find_kept(model: Model) -> Mapping[str, str]:
    """Return how the model's training data were read, where that isn't the default."""
    return model.task.reading if isinstance(model, Predictor) else find_reading(model)


def refuse_columns(settings: Mapping[str, object]) -> None:
    """Refuse what says how tables are read, such as names of columns, which tuples haven't got."""
    known = list_fields((TaskColumns, PredictSettings))
    for name, value in settings.items():
        if name in known and value is not None:
            raise SettingsError(
                f"{name} is for rows with columns, and the rows are tuples; leave it out, or give"
                " mappings"
            )


def check_tuples(predictor: AnyPredictor) -> None:
    """Refuse pairs of texts, or texts with a label, if the model reads single texts."""
    if getattr(predictor.task.settings, "pairs", None) is False:
        raise InputError(
            "a tuple is one input here, a pair of texts, and the model reads single texts; leave"
            " out labels, or give mappings with the key text"
        )


@takes(TaskColumns, EvaluateSettings, EngineSettings)
def evaluate(
    model: Model | Embedder,
    data: Table | None = None,
    *,
    retrieval: tuple[Table, Table, Table] | None = None,
    **settings: "Unpack[EvaluateKeywords]",
) -> EvaluateResult:
    """Evaluate a fine-tuned model on labeled data, or what an encoder finds in a corpus.

    Args:
        model: a fine-tuned model, its folder, or the id of a model of the Hub.
        data: labeled rows, or a file by name.
        retrieval: in place of data, passages with ids, queries with ids, and judgments (rows of
            query-id, corpus-id and score), each as rows or a file by name; the model is an encoder.

    Further keyword arguments: fields of `EngineSettings` and `EvaluateSettings`, and names of
    columns that differ from those of the training data.

    Returns:
        The result, with `metrics` and `evaluation`.

    Raises:
        BertkitError: as in `bertkit.recipes.evaluate.run.evaluate`.
    """
    chosen, columns = build(EvaluateSettings, settings), build(TaskColumns, settings)
    loading = build(EngineSettings, settings)
    if data is None and retrieval is not None:
        judged_set.refuse_columns(columns)
        judged = judged_set.JudgedSet.read([hold_rows(each) for each in retrieval], chosen)
        shown = "the encoder" if isinstance(model, Embedder) else str(model)
        return evaluate_retrieval(partial(load_encoder, model, loading), judged, shown)
    if data is None or retrieval is not None:
        raise SettingsError(judged_set.NEEDS_DATA)
    kept = {} if isinstance(model, Embedder) else find_kept(model)
    table = open_records(hold_rows(data), chosen, split=chosen.split, kept=kept)
    name = str(model) if isinstance(model, str | Path) else None
    if isinstance(model, Embedder) or (
        name is not None and is_encoder(OpenModel.open(name, revision=loading.revision))
    ):
        return evaluate_pairs(partial(load_encoder, model, loading), table, columns, name)
    load = partial(Predictor.take, model, loading)
    return run_evaluate(load, table, chosen, columns, name)


@takes(EngineSettings, TableSettings)
def rerank(
    query: str,
    texts: Table,
    *,
    model: str | Path | Reranker,
    top_k: int | None = None,
    **settings: "Unpack[RerankKeywords]",
) -> list[RankedPassage]:
    """Order texts by how well they answer a query, the best first.

    Args:
        query: a text.
        texts: a list of texts, a data frame, a file, folder or glob by name, or a list of `Path`.
        model: a model of `bertkit finetune rerank` or another model of pairs, its folder, or the
            id of a model of the Hub.
        top_k: return so many; by default all.

    Further keyword arguments: fields of `EngineSettings`, and of `TableSettings`, which say how to
    read the texts.

    Raises:
        InputError: the query is empty, or the texts can't be read.
        SettingsError: `top_k` isn't a whole number of at least 1.
        BertkitError: the model can't be loaded, or isn't one of pairs.
    """
    check_count("top_k", top_k)
    rows = read_texts(texts, build(TableSettings, settings))
    reranker, counts = Reranker.take(model, build(EngineSettings, settings)), PredictionCounts()
    found = reranker.rank(query, rows, top_k, counts)
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the texts")
    return found
