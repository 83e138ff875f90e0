"""What results show in a notebook: tables, escaped."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

from markupsafe import Markup

from bertkit.reports.text import MetricCell, format_cell

MAX_ROWS = 20
Row = Mapping[str, Any]

Result = TypeVar("Result")


def show_metrics(title: str, metrics: Mapping[str, float]) -> str:
    """Return metrics as an HTML table, escaped; at most `MAX_ROWS` of them."""
    rows = [
        Markup("<tr><td>{}</td><td>{}</td></tr>").format(
            name, format_cell(MetricCell.of(name, value))
        )
        for name, value in list(metrics.items())[:MAX_ROWS]
    ]
    if len(metrics) > MAX_ROWS:
        rows.append(Markup("<tr><td>and {} more</td></tr>").format(len(metrics) - MAX_ROWS))
    return Markup("<p>{}</p><table>{}</table>").format(title, Markup("").join(rows))


def show_rows(rows: Sequence[Row], num_left_out: int = 0) -> str:
    """Return rows as an HTML table, escaped: long texts shortened, at most `MAX_ROWS` rows.

    A column that a row lacks is empty there; `num_left_out` counts rows that aren't among these.
    """
    # the name of a column says whether its numbers are shares
    shown = [
        {
            name: MetricCell.of(name, value) if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in rows[:MAX_ROWS]
    ]
    columns = list(dict.fromkeys(name for row in shown for name in row))
    body = [_show_row("td", map(row.get, columns)) for row in shown]
    if num_left_out := num_left_out + len(rows[MAX_ROWS:]):
        more = Markup('<tr><td colspan="{}">and {:,} more</td></tr>')
        body.append(more.format(max(1, len(columns)), num_left_out))
    head = _show_row("th", columns)
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(
        head, Markup("").join(body)
    )


def _show_row(tag: str, values: Iterable[Any]) -> Markup:
    words = {None: "", True: "yes", False: "no"}
    cells = (
        Markup("<{0}>{1}</{0}>").format(
            tag, words[value] if value is None or isinstance(value, bool) else format_cell(value)
        )
        for value in values
    )
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


class Tabular:
    """A result that a notebook shows as a table, and in a list of results as a row."""

    def as_row(self) -> Row:
        """Return its row: fields that are a text, a number or a truth value."""
        values = {field.name: getattr(self, field.name) for field in fields(cast("Any", self))}
        return {
            name: value
            for name, value in values.items()
            if value is None or isinstance(value, str | int | float)
        }

    def as_rows(self) -> Sequence[Row]:
        """Return the rows of its own table."""
        return [self.as_row()]

    def _repr_html_(self) -> str:
        return show_rows(self.as_rows())


class ResultList(list[Result]):
    """A list that a notebook shows as a table; a list of lists has the number of each, from 0."""

    def _repr_html_(self) -> str:
        rows: list[Row] = []
        for number, result in enumerate(self[:MAX_ROWS]):
            parts = result if isinstance(result, list) else [result]
            for part in parts:
                row = part.as_row() if isinstance(part, Tabular) else {"result": part}
                rows.append({"": number, **row})
        return show_rows(rows, len(self[MAX_ROWS:]))
