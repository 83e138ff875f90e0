"""The findings of a review beside its rows: a table in a file, and the page to go through."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path

from bertkit.base.files import check_new_file
from bertkit.base.output import open_output
from bertkit.data.tables.records import RecordTable
from bertkit.data.writers import Row, check_output, check_suffix, write_rows
from bertkit.recipes.review.page import PageRow, ReviewPage
from bertkit.recipes.review.result import ReviewedRow, ReviewResult
from bertkit.recipes.review.rows import ReviewedRows
from bertkit.reports.interactive import write_page
from bertkit.reports.text import format_percent
from bertkit.tasks.labeled_table import FINDINGS

PAGE_SUFFIX = ".html"
MAX_PAGE_ROWS = 10_000


@dataclass(frozen=True)
class Places:
    """Where a review is written."""

    output: Path | None = None  # the table
    report: Path | None = None  # the page
    overwrite: bool = False


@contextmanager
def open_places(
    places: Places, tables: Sequence[RecordTable]
) -> Iterator[tuple[Path | None, Path | None]]:
    """Lock the table and the page of a review, if they are asked for; yield where to write.

    None is one of the tables that are read.
    """
    inputs = [table.path for table in tables if isinstance(table.path, Path)]
    with ExitStack() as stack:

        def lock(path: Path | None, check: Callable[..., None], flag: str) -> Path | None:
            if path is None:
                return None
            opened = open_output(
                path,
                "writing a review into",
                inputs=inputs,
                check=partial(check, overwrite=places.overwrite),
                flag=flag,
            )
            return stack.enter_context(opened)

        output = lock(places.output, check_output, "--output")
        yield output, lock(places.report, check_page, "--report")


def check_page(path: Path, *, overwrite: bool) -> None:
    """Raise an error if it isn't the name of a page, or exists and must not be replaced."""
    check_suffix(path, (PAGE_SUFFIX,))
    check_new_file(path, overwrite=overwrite)


def write_table(result: ReviewResult, output: Path) -> None:
    """Write all rows of the file, in order, with the findings in columns beside them."""
    write_rows(output, list_rows(result), result.rows.labeled.tables[0].csv_style)


def name_findings(rows: ReviewedRows, names: Collection[str]) -> str:
    """Return what the names of findings begin with, so that no column of the file is alike."""
    known = set(chain.from_iterable(record.values for record in rows.records))
    prefixes = chain(["", "review_"], (f"review_{number}_" for number in count(2)))
    return next(one for one in prefixes if known.isdisjoint(f"{one}{name}" for name in names))


def list_rows(result: ReviewResult) -> Iterator[Row]:
    """Yield each row with its findings, which are empty for a row that can't be used.

    If the file has a column of the same name, the columns of the findings begin with `review_`.
    """
    records = result.rows.records
    prefix = name_findings(result.rows, FINDINGS)
    found = {one.place: number for number, one in enumerate(result.examples)}
    columns = list(dict.fromkeys(chain.from_iterable(one.values for one in records)))
    for record in records:
        number = found.get(record.place)
        row = {} if number is None else describe_findings(result.describe_row(number))
        findings = {f"{prefix}{name}": row.get(name) for name in FINDINGS}
        yield {**dict.fromkeys(columns), **record.values, **findings}


def describe_findings(row: ReviewedRow) -> Mapping[str, object]:
    """Return the findings about a row as cells."""
    cells = {name: getattr(row, name) for name in FINDINGS}
    return {**cells, "notes": "; ".join(row.notes)}


def build_page(result: ReviewResult) -> ReviewPage:
    """Build the page to go through: rows that look wrong or stand twice, the worst first."""
    numbers = result.ranking[:MAX_PAGE_ROWS]
    is_tagged = result.task.name == "tag"  # a row is a sentence, which has no single label
    return ReviewPage(
        title=f"Review of {result.rows.labeled.name}",
        summary=result.lines,
        labels=() if is_tagged else result.task.labels,
        rows=[_build_row(result.describe_row(number), is_tagged) for number in numbers],
        identity=result.rows.labeled.sha256[0],
    )


def _build_row(row: ReviewedRow, is_tagged: bool) -> PageRow:
    wrong = ["the label looks wrong"] if row.looks_wrong else []
    if is_tagged and row.likely:  # the tag of one word isn't what the sentence's change to
        wrong.append(f"likely {row.likely} ({format_percent(row.probability)})")
        row = replace(row, likely="", probability=math.nan)
    return PageRow(
        number=row.number,
        place=row.place,
        text=row.text,
        given=row.label,
        likely=row.likely,
        probability=row.probability,
        reasons=[*wrong, *row.notes] or ["no sign that the label is wrong"],
        twins=row.twins,
    )


def write_review(result: ReviewResult, output: Path | None, report: Path | None) -> None:
    """Write the table and the page of a review, where they are asked for."""
    if output is not None:
        write_table(result, output)
    if report is not None:
        write_page(report, build_page(result).build())
