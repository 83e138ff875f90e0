"""`bertkit evaluate`: evaluate a model on labeled data."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import SettingsError
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.base.settings import Settings
from bertkit.cli.next_step import choose_arguments, find_free, repeat_flags, suggest
from bertkit.cli.output import print_result
from bertkit.cli.texts import Words, legible, open_result
from bertkit.inference.settings import EngineSettings
from bertkit.recipes.settings import EvaluateSettings
from bertkit.tasks.settings import choose_columns
from bertkit.tasks.table import TASKS

if TYPE_CHECKING:
    from bertkit.recipes.evaluate.result import EvaluateResult

COLUMNS: Any = choose_columns(*(entry.settings for entry in TASKS.values()))


def evaluate(
    model: str,
    data: Words | None = None,
    /,
    *,
    retrieval: Annotated[tuple[str, str, str] | None, Parameter(negative="")] = None,
    output: Path | None = None,
    settings: EvaluateSettings = EvaluateSettings(),
    columns: COLUMNS = COLUMNS(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Evaluate a fine-tuned model on labeled data, or what an encoder finds in a corpus.

    Prints the task's metrics with 95 % confidence intervals, the confusion matrix, the calibration,
    and the worst mistakes. Rows that can't be used are skipped and counted. A pre-trained model,
    which needs no labels, is evaluated by `bertkit score`.

    An encoder is evaluated on queries with their passages, or on pairs with a score. With
    --retrieval, it searches a corpus for each query, and what it finds is compared with relevance
    judgments: nDCG, MRR, MAP, recall and precision, as by trec_eval.

    **Examples**

        bertkit evaluate sentiment/ test.csv

        bertkit evaluate sentiment/ reviews.jsonl --text-column body --label-column stars

        bertkit evaluate squad/ dev-v2.0.json --output squad-dev/

        bertkit evaluate encoder/ pairs.csv

        bertkit evaluate encoder/ --retrieval corpus.jsonl queries.jsonl qrels.tsv

    Args:
        model: A folder of `bertkit finetune`, another tool's model, or the id of a model of the
            Hub.
        data: A labeled file as for training, a GLUE folder, or hub:owner/name.
        retrieval: Three files: passages with ids (and titles), queries with ids, and judgments,
            rows with the ids of a query and a passage and the passage's relevance, as in BEIR's
            data sets.
        output: Folder for a report, metrics.json, and the predictions as JSONL and for official
            scorers.
        json: Print one JSON object.
    """
    from bertkit.checkpoints.hub import check_model

    if output is None:
        check_standard_output()
    check_model(model)  # this, and the data, before torch is loaded
    run = (
        prepare_rows(model, data, settings, columns, loading)
        if retrieval is None
        else prepare_retrieval(model, retrieval, data, settings, columns, loading)
    )
    from bertkit.recipes.evaluate.result import check_output, summarize, write_evaluation
    from bertkit.recipes.evaluate.text import render

    with open_result(
        output,
        "evaluating into",
        retrieval or data,
        check_output,
        overwrite=settings.overwrite,
        is_workplace=True,
    ) as place:
        result = run()
        for line in result.data_problems:
            announce(legible(line))
        if place is not None:
            write_evaluation(place, result)
            announce(f"{place}: wrote the report and the predictions")
    print_result(
        result,
        lambda result: "\n".join(map(legible, render(result))),
        json=json,
        facts=summarize(result),
    )
    engine = repeat_flags(loading, EngineSettings)
    if output is None:
        reading = [*repeat_flags(settings, EvaluateSettings), *repeat_flags(columns, COLUMNS)]
        source = ["--retrieval", *retrieval] if retrieval else [str(data)]
        words = ["evaluate", model, *source, *reading, *engine, "--output"]
        suggest(*words, find_free(Path("evaluation")), json=json)
    elif retrieval is None:
        given = choose_arguments(example.arguments for example in result.examples)
        suggest(result.task, model, *given, *engine, json=json or not given)


def prepare_rows(
    model: str,
    data: str | None,
    settings: EvaluateSettings,
    columns: Settings,
    loading: EngineSettings,
) -> "Callable[[], EvaluateResult]":
    """Open labeled data, and return what evaluates the model on them."""
    from bertkit.recipes.evaluate.judged_set import NEEDS_DATA
    from bertkit.tasks.saved import open_for_model

    if data is None:
        raise SettingsError(NEEDS_DATA)
    split = settings.split
    table = open_for_model(model, data, settings, columns, split=split, needs_answer=True)
    from bertkit.inference.predictor import AnyPredictor
    from bertkit.models.open_model import OpenModel
    from bertkit.recipes.evaluate.pairs import evaluate_pairs, is_encoder
    from bertkit.recipes.evaluate.retrieval import load_encoder
    from bertkit.recipes.evaluate.run import evaluate

    def run() -> "EvaluateResult":
        if is_encoder(OpenModel.open(model, revision=loading.revision)):
            return evaluate_pairs(partial(load_encoder, model, loading), table, columns, model)
        load = partial(AnyPredictor.load, model, loading)
        return evaluate(load, table, settings, columns, model)

    return run


def prepare_retrieval(
    model: str,
    sources: tuple[str, str, str],
    data: str | None,
    settings: EvaluateSettings,
    columns: Settings,
    loading: EngineSettings,
) -> "Callable[[], EvaluateResult]":
    """Read a judged set, and return what evaluates the encoder on it."""
    from bertkit.recipes.evaluate.judged_set import NEEDS_DATA, JudgedSet, refuse_columns

    if data is not None:
        raise SettingsError(f"{NEEDS_DATA}, not both")
    refuse_columns(columns)
    judged = JudgedSet.read(sources, settings)
    from bertkit.recipes.evaluate.retrieval import evaluate_retrieval, load_encoder

    return partial(evaluate_retrieval, partial(load_encoder, model, loading), judged, model)
