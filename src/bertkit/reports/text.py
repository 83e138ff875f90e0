"""Safe display of untrusted text: legible characters, and names shortened to fit."""

import math
import re
import unicodedata
from dataclasses import dataclass

NAME_COLUMNS = 80
# First: control characters, lone surrogates and noncharacters. Then invisible characters that
# change how text is laid out: zero-width spaces, line separators, bidirectional controls.
_ILLEGIBLE = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def show(text: str, limit: int = NAME_COLUMNS) -> str:
    """Return untrusted text as one line for display: a label, a column name, an example's text.

    All user data that is displayed passes through here: no character that controls a terminal or
    reorders a page, and … at the end if it exceeds `limit` columns. Data files keep it unchanged.
    """
    start = text[: 8 * limit]  # so that a cell of megabytes isn't split at whitespace
    shown = " ".join(make_legible(start).split())
    return shorten(shown if len(start) == len(text) else shown + "…", limit)


def make_legible(text: str) -> str:
    """Replace control characters by their pictures (␀) and others by �; the length stays the same.

    XML allows no control characters, not even escaped: viewers refuse an SVG file that has one.
    A right-to-left override would reverse all text after it.
    """
    return _ILLEGIBLE.sub(
        lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", text
    )


def shorten(text: str, limit: int = NAME_COLUMNS) -> str:
    """Truncate a text with … if it takes more than `limit` ≥ 2 columns."""
    num_columns = 0
    for index, character in enumerate(text):
        num_columns += count_columns(character)
        if num_columns > limit:
            return text[: index - 1] + "…"
    return text


def count_columns(text: str) -> int:
    """Return about how many monospaced columns a text takes: wide East Asian characters take 2."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


TEXT_COLUMNS = 400  # the longest text that a cell shows
# Last words of the names of metrics that are shares of 1; others, such as losses, aren't.
SHARES = frozenset(
    {"accuracy", "confidence", "exact", "f1", "match", "precision", "probability", "recall"}
    | {"calibration_error", "share_of_peak", "map", "mrr", "ndcg"}
)
POINTS = frozenset({"bleu", "chrf"})  # go up to 100, and are quoted with one decimal
SMALLEST = 0.0005  # smaller numbers would be 0.000


@dataclass(frozen=True)
class MetricCell:
    """A value, with the interval or spread around it if there is one."""

    value: float
    is_share: bool = False  # of 1, shown as a percentage
    interval: tuple[float, float] | None = None
    num_decimals: int = 3  # at most, of what isn't a share

    @classmethod
    def of(
        cls, name: str, value: float | None, interval: tuple[float, float] | None = None
    ) -> "MetricCell":
        """Build the cell of a metric, whose name says whether it is a share."""
        shown = math.nan if value is None else value
        return cls(shown, is_share(name), interval, 1 if name in POINTS else 3)

    def __str__(self) -> str:
        """Format it, such as 77.5 % (70.1–83.0 %) or 0.775 (0.701–0.830)."""
        if not math.isfinite(self.value):
            return "not defined"
        shown = format_percent(self.value) if self.is_share else self._format(self.value)
        return f"{shown} ({self.show_interval()})" if self.show_interval() else shown

    def show_interval(self) -> str:
        """Format the interval alone; empty if there is none."""
        if self.interval is None or not all(map(math.isfinite, self.interval)):
            return ""
        low, high = self.interval
        if self.is_share:
            return f"{100 * low:.1f}–{100 * high:.1f} %"
        return f"{self._format(low)}–{self._format(high)}"

    def _format(self, value: float) -> str:
        return format_number(value, self.num_decimals)


Cell = str | int | float | MetricCell


def is_share(name: str) -> bool:
    """Whether a metric is a share of 1: "macro_f1", "f1 sports", "mlm_accuracy", "recall@10"."""
    kind = re.split("[ @]", name, maxsplit=1)[0]
    if "log" in kind.split("_"):  # of a logarithm, such as log_probability
        return False
    return kind in SHARES or kind.rpartition("_")[2] in SHARES


def format_metric(
    name: str, value: float | None, interval: tuple[float, float] | None = None
) -> str:
    """Format a metric, whose name says whether it is a share; None isn't defined."""
    return str(MetricCell.of(name, value, interval))


def format_percent(share: float, num_decimals: int = 1) -> str:
    """Format a share of 1, such as 77.5 %; one that rounds to 0 although it isn't is <0.1 %."""
    if not math.isfinite(share):
        return "not defined"
    least = 10.0**-num_decimals
    if 0 < 100 * share < least / 2:
        return f"<{least:.{num_decimals}f} %"
    return f"{100 * share:.{num_decimals}f} %"


def format_number(value: float, num_decimals: int = 3) -> str:
    """Format a number that isn't a share, with at most so many decimals."""
    if math.isnan(value):
        return "not defined"
    if 1e3 <= abs(value) < 1e15 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.{num_decimals}f}" if SMALLEST <= abs(value) < 1e3 else f"{value:.3g}"


def format_cell(cell: Cell) -> str:
    """Format a number for display, or text as one line."""
    if isinstance(cell, str):
        return show(cell, TEXT_COLUMNS)
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(cell) if isinstance(cell, MetricCell) else format_number(cell)
