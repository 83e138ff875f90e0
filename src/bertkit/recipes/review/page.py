"""The page on which rows are gone through; its scripts are in `page/`: read `start.js` first.

Rows travel in compressed data blocks as they are: scripts make them legible where they show them,
and the table of decisions that a browser saves has their texts unchanged.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from bertkit.reports.interactive import InteractivePage, page_modules, read_files


@dataclass(frozen=True)
class PageRow:
    """A row that somebody should look at."""

    number: int  # in its file; no other row of the page has it
    place: str  # such as "reviews.csv, row 17"
    text: str
    given: str  # its label in the file, several as one text; empty if it has none
    likely: str  # the label that is expected instead; empty if there is none
    probability: float  # of the likely label; NaN if it isn't known
    reasons: Sequence[str]  # why it is here
    twins: Sequence[int]  # numbers of the rows that repeat it


@dataclass(frozen=True)
class ReviewPage:
    """The rows to go through, in the order in which they are shown."""

    title: str
    summary: Sequence[str]
    labels: Sequence[str]  # to choose from; none where any text may be one, such as a number
    rows: Sequence[PageRow]
    identity: str  # SHA-256 of the reviewed file, under which the browser remembers decisions

    def build(self) -> InteractivePage:
        """Return the page; it fetches nothing and sends nothing."""
        folder = resources.files("bertkit.recipes.review").joinpath("page")
        rows = [
            vars(row) | {"probability": None if math.isnan(row.probability) else row.probability}
            for row in self.rows
        ]
        return InteractivePage(
            title=self.title,
            modules=page_modules() | read_files(folder, ".js"),
            styles=list(read_files(folder, ".css").values()),
            data={"identity": self.identity, "summary": list(self.summary)},
            arrays={"labels": _pack(list(self.labels)), "rows": _pack(rows)},
        )


def _pack(values: object) -> bytes:
    """Return JSON in ASCII, which even half a surrogate pair goes through."""
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
