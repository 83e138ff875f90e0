"""Functions that use a model: predictions, metrics, a view of the attention."""

from pathlib import Path
from typing import Any, cast

from bertkit.api.inputs import hold_rows
from bertkit.api.interrupts import ends_in_one_line
from bertkit.api.kept import take_object
from bertkit.api.settings import build, divide, takes_settings
from bertkit.base.errors import SettingsError
from bertkit.base.progress import show_progress
from bertkit.batch_jobs.evaluate.held_out import HeldOutResult, evaluate_held_out
from bertkit.batch_jobs.evaluate.run import EvaluatedModel, EvaluateResult
from bertkit.batch_jobs.evaluate.run import evaluate as run_evaluate
from bertkit.batch_jobs.evaluate.settings import EvaluateSettings
from bertkit.batch_jobs.predict.run import answer_file
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.checkpoints.bundled import find_bundled
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.inference.predictor import Predictor
from bertkit.interpret.page.attention_view import AttentionView
from bertkit.interpret.page.settings import ViewSettings
from bertkit.reports.notebook import ResultList
from bertkit.scoring.minimal_pairs import PairsResult, judge_pairs
from bertkit.scoring.text_scorer import TextScorer
from bertkit.tasks.column_settings import choose_columns
from bertkit.tasks.table import TASKS

Model = str | Path | Predictor[Any, Any, Any]

COLUMNS = choose_columns(*(entry.settings for entry in TASKS.values()))


@ends_in_one_line
@takes_settings(PredictSettings, *(entry.answers for entry in TASKS.values()), COLUMNS)
def predict(
    model: Model,
    data: Table,
    *,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    **settings: Any,
) -> list[Any]:
    """Predict the rows of a file, a data frame or a list; prediction n belongs to row n.

    Args:
        model: a fine-tuned model, its folder, or the id of a model of the Hub.
        data: rows, with or without labels, or a file by name.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        engine: the inference engine; auto takes the fastest that is installed.
        precision: of matrix products.
        settings: fields of `PredictSettings`, names of columns that differ from those of the
            training data, and for classifiers `top_k`.

    Returns:
        Predictions, such as `Classification`, as the model's predictor returns them.

    Raises:
        InputError: a row can't be read, or columns are missing.
        BertkitError: the model can't be loaded.
    """
    options = {"device": device, "revision": revision, "engine": engine, "precision": precision}
    predictor: Predictor[Any, Any, Any] = take_object(Predictor, model, **options)
    given = TASKS[predictor.task.name].answers
    parts = divide({"columns": COLUMNS, "answers": given, "predict": PredictSettings}, settings)
    chosen = build(PredictSettings, parts["predict"], "predict")
    columns = build(COLUMNS, parts["columns"], "predict")
    predictor = predictor.giving(build(given, parts["answers"], "predict"))
    answers = answer_file(predictor, cast("Table", hold_rows(data)), chosen, columns)
    with show_progress("Predicting", None) as progress:
        return ResultList(row.prediction for row in answers.read(progress))


@ends_in_one_line
@takes_settings(EvaluateSettings, COLUMNS)
def evaluate(
    model: Model,
    data: Table | None = None,
    *,
    minimal_pairs: str | Path | None = None,
    held_out: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    **settings: Any,
) -> EvaluateResult | PairsResult | HeldOutResult:
    """Evaluate a model on labeled data, on minimal pairs or on held-out text.

    Args:
        model: a fine-tuned model, its folder, or, for text, a pre-trained one.
        data: labeled rows, or a file by name.
        minimal_pairs: a file of pairs, as `bertkit evaluate --minimal-pairs` reads it.
        held_out: a folder of shards with held-out text.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        engine: the inference engine; auto takes the fastest that is installed.
        precision: of matrix products.
        settings: fields of `EvaluateSettings`, and names of columns that differ from those of the
            training data.

    Returns:
        The result; that of labeled data has `metrics` and `evaluation`.

    Raises:
        SettingsError: not exactly one of data, minimal pairs and held-out text is given.
        BertkitError: as in `bertkit.batch_jobs.evaluate.run.evaluate`.
    """
    if sum(each is not None for each in (data, minimal_pairs, held_out)) != 1:
        raise SettingsError("give one of: labeled data, minimal_pairs, held_out")
    parts = divide({"columns": COLUMNS, "evaluate": EvaluateSettings}, settings)
    chosen = build(EvaluateSettings, parts["evaluate"], "evaluate")
    if data is not None:
        columns = build(COLUMNS, parts["columns"], "evaluate")
        named = EvaluatedModel(model, device, revision, engine, precision)
        return run_evaluate(named, cast("Table", hold_rows(data)), chosen, columns)
    if isinstance(model, Predictor):
        raise SettingsError("minimal pairs and held-out text are for pre-trained models; name one")
    if held_out is not None:
        if (engine, precision) != ("auto", "auto"):
            raise SettingsError("held-out text is evaluated as in training: no engine, precision")
        return evaluate_held_out(str(model), Path(held_out), device, revision=revision)
    options = {"device": device, "revision": revision, "engine": engine, "precision": precision}
    scorer = take_object(TextScorer, model, **options)
    reading = RecordSettings(**chosen.model_dump(include=set(RecordSettings.model_fields)))
    return judge_pairs(scorer, cast("str", minimal_pairs), reading)


@ends_in_one_line
@takes_settings(ViewSettings)
def view(
    text: str,
    pair: str | None = None,
    *,
    model: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    precision: PrecisionName = "auto",
    **settings: Any,
) -> AttentionView:
    """Show a model's attention for a text: a page in a notebook; `.write(path)` makes a file.

    Args:
        text: the text.
        pair: a second text; for an encoder-decoder, the target text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        precision: of weights and matrix products: fp32 (auto) or bf16.
        settings: fields of `ViewSettings`.

    Raises:
        BertkitError: as in `AttentionView.of`.
    """
    chosen = build(ViewSettings, settings, "view")
    place = model if model is not None else find_bundled(chosen.bundled_part)
    return AttentionView.of(
        place, text, pair, chosen, device=device, revision=revision, precision=precision
    )
