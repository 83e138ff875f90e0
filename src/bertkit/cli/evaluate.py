"""`bertkit evaluate`: evaluate a fine-tuned model on labeled data."""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bertkit.base.progress import announce
from bertkit.batch_jobs.evaluate.settings import EvaluateSettings
from bertkit.cli.results import open_result
from bertkit.cli.texts import legible
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.tasks.column_settings import choose_columns
from bertkit.tasks.table import TASKS

COLUMNS: Any = choose_columns(*(entry.settings for entry in TASKS.values()))


def evaluate(
    model: str,
    data: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    output: Path | None = None,
    settings: Annotated[EvaluateSettings, Parameter(name="*")] = EvaluateSettings(),  # noqa: B008
    columns: Annotated[COLUMNS, Parameter(name="*")] = COLUMNS(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    json: bool = False,
) -> None:
    """Evaluate a fine-tuned model on labeled data.

    Prints the task's metrics with 95 % confidence intervals, the confusion matrix, the calibration,
    and the worst mistakes. Rows that can't be used are skipped and counted.

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
        settings: The settings of the command.
        columns: Names of the columns, if they differ from those of the training data.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: The inference engine; auto uses the fastest that is installed.
        precision: Precision of matrix products: auto takes bf16 where it is native and measures
            faster, else fp32; int8 is faster on processors with VNNI, and less exact.
        json: Print one JSON object.
    """
    from bertkit.batch_jobs.evaluate import files, text
    from bertkit.batch_jobs.evaluate.run import EvaluatedModel
    from bertkit.batch_jobs.evaluate.run import evaluate as run

    with open_result(
        output,
        "evaluating into",
        data,
        files.check_output,
        overwrite=settings.overwrite,
        is_workplace=True,
    ) as place:
        result = run(
            EvaluatedModel(model, device, revision, engine, precision), data, settings, columns
        )
        for line in result.data_problems:
            announce(legible(line))
        if place is not None:
            files.write_evaluation(place, result)
            announce(f"{place}: wrote the report and the predictions")
    if json:
        print(json_module.dumps(files.summarize(result), ensure_ascii=False))
    else:
        print(*map(legible, text.render(result)), sep="\n")
