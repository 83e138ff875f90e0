"""The review of labeled rows before training on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bertkit.api.inputs import hold_rows, take_path
from bertkit.api.predictions import TaskColumns
from bertkit.api.settings import build, takes
from bertkit.checkpoints.bundled import find_bundled
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table
from bertkit.recipes.review.pool import NextRows, suggest_next
from bertkit.recipes.review.result import ReviewResult
from bertkit.recipes.review.run import review as run_review
from bertkit.recipes.review.settings import ReviewSettings, check_request, choose_settings
from bertkit.recipes.review.table import Places

if TYPE_CHECKING:
    from bertkit.api.keywords import ReviewKeywords


@takes(TaskColumns, ReviewSettings)
def review(
    data: Table,
    *others: Table,
    model: str | Path | None = None,
    output: str | Path | None = None,
    report: str | Path | None = None,
    **settings: "Unpack[ReviewKeywords]",
) -> ReviewResult | NextRows:
    """Review labeled rows before training on them: wrong labels, repeated rows, honest numbers.

    Args:
        data: labeled rows, or a file by name.
        others: further ones, such as test data: rows that they share with `data` are named. With
            `next`, the rows that have labels already.
        model: an encoder or a fine-tuned model; by default the one that comes with bertkit.
        output: file for the rows with the findings beside them.
        report: file for a page (.html) to go through the rows in a browser.

    Further keyword arguments: fields of `ReviewSettings`, and names of columns.

    Returns:
        The findings, or the rows to label next: a notebook shows them, `to_rows()` has them beside
        the cells of the rows.

    Raises:
        BertkitError: as in `bertkit.recipes.review.run.review`.

    Examples:
        >>> found = bertkit.review("reviews.csv")  # doctest: +SKIP
        >>> [row for row in found.to_rows() if row["looks_wrong"]]  # doctest: +SKIP
    """
    chosen, columns = build(ReviewSettings, settings), build(TaskColumns, settings)
    check_request(chosen, model)
    held = [hold_rows(table) for table in (data, *others)]
    splits = ["train" if isinstance(table, str | Path) else "rows" for table in held]
    tables = [
        open_records(table, chosen, split=split) for table, split in zip(held, splits, strict=True)
    ]
    places = Places(
        None if output is None else take_path(output, "output"),
        None if report is None else take_path(report, "report"),
        chosen.overwrite,
    )
    if chosen.next is not None and model is not None:
        return suggest_next(tables, model, chosen.next, columns, places)
    task = choose_settings(tables[0], chosen, columns.model_dump(exclude_none=True))
    return run_review(tables, task, model or find_bundled("vectors"), places)
