"""`bertkit evaluate`: evaluate a model on labeled data."""

from functools import partial
from pathlib import Path
from typing import Any

from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.cli.next_step import choose_arguments, find_free, repeat_flags, suggest
from bertkit.cli.output import print_result
from bertkit.cli.texts import Words, legible, open_result
from bertkit.inference.settings import EngineSettings
from bertkit.recipes.settings import EvaluateSettings
from bertkit.tasks.settings import choose_columns
from bertkit.tasks.table import TASKS

COLUMNS: Any = choose_columns(*(entry.settings for entry in TASKS.values()))


def evaluate(
    model: str,
    data: Words,
    /,
    *,
    output: Path | None = None,
    settings: EvaluateSettings = EvaluateSettings(),
    columns: COLUMNS = COLUMNS(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Evaluate a fine-tuned model on labeled data.

    Prints the task's metrics with 95 % confidence intervals, the confusion matrix, the calibration,
    and the worst mistakes. Rows that can't be used are skipped and counted. A pre-trained model,
    which needs no labels, is evaluated by `bertkit score`.

    **Examples**

        bertkit evaluate sentiment/ test.csv

        bertkit evaluate sentiment/ reviews.jsonl --text-column body --label-column stars

        bertkit evaluate squad/ dev-v2.0.json --output squad-dev/

    Args:
        model: A folder of `bertkit finetune`, another tool's model, or the id of a model of the
            Hub.
        data: A labeled file as for training, a GLUE folder, or hub:owner/name.
        output: Folder for a report, metrics.json, and the predictions as JSONL and for official
            scorers.
        json: Print one JSON object.
    """
    from bertkit.checkpoints.hub import check_model

    if output is None:
        check_standard_output()
    check_model(model)  # this, and the data, before torch is loaded
    from bertkit.tasks.saved import open_for_model

    split = settings.split
    table = open_for_model(model, data, settings, columns, split=split, needs_answer=True)
    from bertkit.inference.predictor import AnyPredictor
    from bertkit.recipes.evaluate.run import check_output, summarize, write_evaluation
    from bertkit.recipes.evaluate.run import evaluate as run
    from bertkit.recipes.evaluate.text import render

    overwrite = settings.overwrite
    with open_result(
        output, "evaluating into", data, check_output, overwrite=overwrite, is_workplace=True
    ) as place:
        load = partial(AnyPredictor.load, model, loading)
        result = run(load, table, settings, columns, model)
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
        words = ["evaluate", model, data, *reading, *engine, "--output"]
        suggest(*words, find_free(Path("evaluation")), json=json)
    else:
        given = choose_arguments(example.arguments for example in result.labeled.examples)
        suggest(result.task.name, model, *given, *engine, json=json or not given)
