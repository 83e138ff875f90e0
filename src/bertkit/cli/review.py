"""`bertkit review`: look at labeled rows before training on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.cli.output import print_result
from bertkit.cli.texts import NamedModel, Words, choose_model, legible
from bertkit.recipes.review.settings import ReviewSettings, check_request, choose_settings
from bertkit.tasks.settings import choose_columns
from bertkit.tasks.table import TASKS

if TYPE_CHECKING:
    from bertkit.recipes.review.pool import NextRows
    from bertkit.recipes.review.result import ReviewResult

COLUMNS: Any = choose_columns(*(entry.settings for entry in TASKS.values()))


def review(
    data: Words,
    /,
    *others: Words,
    model: NamedModel = None,
    output: Path | None = None,
    report: Path | None = None,
    settings: ReviewSettings = ReviewSettings(),
    columns: COLUMNS = COLUMNS(),
    json: bool = False,
) -> None:
    """Review labeled rows before training on them: wrong labels, repeated rows, honest numbers.

    Nothing is trained: an encoder reads the rows once, and a linear layer, solved in seconds,
    predicts each by the others. Some labels are exchanged for a check, to say how many of such
    errors are found.

    **Examples**

        bertkit review reviews.csv

        bertkit review train.csv test.csv

        bertkit review reviews.csv --output reviewed.csv --report review.html

        bertkit review pool.csv --model sentiment/ --next 50

    Args:
        data: Labeled rows: a file as for training, a GLUE folder, or hub:owner/name.
        others: Further files, such as held-out and test data: rows that they share with DATA are
            named. With --next, the rows that have labels already.
        model: An encoder or a fine-tuned model: a folder, or the id of a model of the Hub; by
            default the model that comes with bertkit.
        output: File for the rows with what was found beside them: .csv, .tsv, .jsonl, .parquet or
            .xlsx.
        report: File for a page (.html) to go through the rows in a browser.
        json: Print one JSON object.
    """
    require_torch("`bertkit review`")
    from bertkit.data.tables.records import open_records

    check_standard_output()
    check_request(settings, model)
    tables = [open_records(name, settings) for name in (data, *others)]
    if settings.next is None:
        task = choose_settings(tables[0], settings, columns.model_dump(exclude_none=True))
    chosen = choose_model(model, "vectors")
    from bertkit.recipes.review.pool import suggest_next
    from bertkit.recipes.review.run import review as run
    from bertkit.recipes.review.table import Places

    places = Places(output, report, settings.overwrite)
    result: ReviewResult | NextRows
    if settings.next is None:
        result = run(tables, task, chosen, places)
    else:
        result = suggest_next(tables, chosen, settings.next, columns, places)
    for path in filter(None, (output, report)):
        announce(f"wrote {path}")
    print_result(result, lambda one: legible(one.describe()), json=json, facts=result.to_json())
    if output is None and report is None and settings.next is None:
        announce(
            "add --report review.html to go through the rows, --output reviewed.csv for a table"
        )
