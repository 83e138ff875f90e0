"""What a result shows in a notebook."""

from collections.abc import Mapping

from markupsafe import Markup

MAX_ROWS = 20


def show_metrics(title: str, metrics: Mapping[str, float]) -> str:
    """Return metrics as an HTML table, escaped; at most `MAX_ROWS` of them."""
    rows = [
        Markup("<tr><td>{}</td><td>{:.4g}</td></tr>").format(name, value)
        for name, value in list(metrics.items())[:MAX_ROWS]
    ]
    if len(metrics) > MAX_ROWS:
        rows.append(Markup("<tr><td>and {} more</td></tr>").format(len(metrics) - MAX_ROWS))
    return Markup("<p>{}</p><table>{}</table>").format(title, Markup("").join(rows))
