"""A study's report: question, verdicts, curves, tables, settings and environment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertkit.base.files import write_file
from bertkit.recipes.model_card import tabulate as tabulate_markdown
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.report import (
    Bar,
    Bars,
    Charts,
    Command,
    Paragraph,
    Report,
    Section,
    Table,
    write_report,
)
from bertkit.reports.text import Cell as TableCell
from bertkit.training.sections import tabulate_environment, tabulate_settings
from bertkit_studies.outcome import Outcome
from bertkit_studies.study import Measure, Side
from bertkit_studies.verdict import Spread, show_spread, show_value

REPORT_FILE, TABLE_FILE = "report.html", "table.md"
HOW_TO_READ = (
    "Medians over the runs of an arm, which differ only in the seed; in parentheses, the lowest"
    " and the highest run."
)
LAST_FIGURE = "For a curve, the last figure is shown."
SECONDS = (
    "Seconds include all parts of a resumed run; work that arms share counts toward the first of"
    " them."
)
RULE = (
    "A claim is shown if every run of one side is better than every run of the other, and"
    " contradicted if every run is worse. A diverged run counts as the worst; if a run failed for"
    " another reason, nothing is decided. “Not shown at this scale” doesn't contradict the claim:"
    " these runs are many thousands of times shorter than those of the papers."
)


def write_pages(folder: Path, outcome: Outcome, command: str) -> None:
    """Write `report.html` and `table.md`.

    Args:
        folder: the study's folder.
        outcome: its results so far.
        command: the command that reproduces it.
    """
    write_report(folder / REPORT_FILE, build_report(outcome, command))
    write_file(folder / TABLE_FILE, build_markdown(outcome, command).encode())


def build_report(outcome: Outcome, command: str) -> Report:
    """Build the HTML report."""
    study = outcome.study
    sections: list[Section] = [
        Paragraph(study.finding, title="What the literature says"),
        tabulate_verdicts(outcome),
        *draw_curves(outcome),
        *draw_bars(outcome),
        tabulate_arms(outcome),
        tabulate_runs(outcome),
        Paragraph(study.caution, title="What to keep in mind"),
        *tabulate_failures(outcome),
        Command(command, title="The command that reproduces this"),
        tabulate_settings({**outcome.record.settings, **outcome.record.values}),
        tabulate_environment(outcome.record.versions),
        *tabulate_other_versions(outcome),
    ]
    title = outcome.summarize().rstrip(".")
    return Report(title, study.budget, sections, name=study.question)


def tabulate_verdicts(outcome: Outcome) -> Section:
    """Tabulate the verdict on each claim."""
    title = "What these runs say"
    if not outcome.verdicts:
        return Paragraph("This study has no claims.", title=title)
    rows: list[list[TableCell]] = [
        [one.claim.text, one.claim.source, one.standing.value, one.compare()]
        for one in outcome.verdicts
    ]
    return Table(["What was found", "Where", "Here", "Figures"], rows, title, RULE)


def draw_curves(outcome: Outcome) -> list[Section]:
    """Draw a chart for each measure with `across`: one line per arm, with its range."""
    charts = []
    for measure in outcome.measures:
        if measure.across is None:
            continue
        series = [_draw_line(outcome, measure, arm.name) for arm in outcome.arms]
        charts.append(
            LineChart(
                title=measure.title,
                x_label=measure.across,
                unit=measure.unit,
                series=[one for one in series if one.points],
                is_percent=measure.is_percent,
                is_logarithmic=measure.is_logarithmic,
            )
        )
    note = "Lines are medians; bands span the lowest to the highest run."
    return [Charts(charts, title="Curves", note=note)] if charts else []


def _draw_line(outcome: Outcome, measure: Measure, arm: str) -> Series:
    spreads = [(at, outcome.spread(measure, Side(arm, at))) for at in outcome.places(measure, arm)]
    found = [(at, spread) for at, spread in spreads if spread.values]
    band = [(at, spread.low, spread.high) for at, spread in found if len(spread.values) > 1]
    return Series(arm, [(at, spread.median) for at, spread in found], band)


def draw_bars(outcome: Outcome) -> list[Section]:
    """Draw bars for each percentage without `across`."""
    return [
        Bars(
            [
                Bar(arm.name, spread.median, show_spread(measure, spread), extent=_extent(spread))
                for arm in outcome.arms
                if (spread := outcome.spread(measure, Side(arm.name))).values
            ],
            title=measure.title,
            note=measure.unit,
        )
        for measure in outcome.measures
        if measure.is_percent and measure.across is None
    ]


def _extent(spread: Spread) -> tuple[float, float] | None:
    return (spread.low, spread.high) if len(spread.values) > 1 else None


def tabulate_arms(outcome: Outcome) -> Table:
    """Tabulate arms and their medians; for a curve, its last figure."""
    measures = outcome.measures
    rows: list[list[TableCell]] = []
    for arm in outcome.arms:
        spreads = [outcome.spread(measure, Side(arm.name)) for measure in measures]
        numbers = [
            show_spread(measure, spread) if spread.values else ""
            for measure, spread in zip(measures, spreads, strict=True)
        ]
        rows.append([arm.name, arm.summary, *numbers])
    columns = ["Arm", "What it is", *(measure.title for measure in measures)]
    return Table(columns, rows, title="All arms", note=f"{HOW_TO_READ} {LAST_FIGURE}")


def tabulate_runs(outcome: Outcome) -> Table:
    """Tabulate every figure of every cell; for a curve, the last one."""
    measures = outcome.measures
    rows: list[list[TableCell]] = []
    for cell, result in outcome.results.items():
        last = {figure.measure: figure.value for figure in result.list_figures()}
        numbers = [
            show_value(measure, last[measure.name]) if measure.name in last else ""
            for measure in measures
        ]
        rows.append([cell.arm, cell.seed, round(result.seconds), *numbers])
    columns = ["Arm", "Seed", "Seconds", *(measure.title for measure in measures)]
    return Table(columns, rows, title="All runs", note=f"{LAST_FIGURE} {SECONDS}")


def tabulate_failures(outcome: Outcome) -> list[Section]:
    """Tabulate failed runs and their errors."""
    rows: list[list[TableCell]] = [
        [cell.arm, cell.seed, failure.error, failure.message]
        for cell, failure in outcome.failures.items()
    ]
    note = "The same command retries them."
    table = Table(["Arm", "Seed", "Error", "Reason"], rows, title="Runs that failed", note=note)
    return [table] if rows else []


def tabulate_other_versions(outcome: Outcome) -> list[Section]:
    """Tabulate runs whose software or machine differs from the study's first."""
    rows: list[list[TableCell]] = [
        [cell.arm, cell.seed, "; ".join(differences)]
        for cell, differences in outcome.other_versions.items()
    ]
    note = "Values at the start of the study → values of the run."
    table = Table(
        ["Arm", "Seed", "What differed"], rows, title="Runs under other conditions", note=note
    )
    return [table] if rows else []


def build_markdown(outcome: Outcome, command: str) -> str:
    """Build the Markdown report."""
    study = outcome.study
    columns, rows = outcome.tabulate()
    parts = [
        f"# {study.question}",
        study.finding,
        f"{outcome.summarize()} {study.budget}",
        "\n".join(f"- {arm.name}: {arm.summary}" for arm in study.arms),
        f"Measured: {'; '.join(f'{each.title} ({each.unit})' for each in outcome.measures)}.",
        tabulate_markdown(columns, rows),
        HOW_TO_READ,
        *([] if not outcome.verdicts else [_list_verdicts(outcome)]),
        *_tabulate_curves(outcome),
        study.caution,
        f"```console\n$ {command}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _list_verdicts(outcome: Outcome) -> str:
    return "\n".join(f"- {verdict.describe()}" for verdict in outcome.verdicts)


def _tabulate_curves(outcome: Outcome) -> list[str]:
    tables = []
    for measure in outcome.measures:
        if measure.across is None:
            continue
        arms = [arm.name for arm in outcome.arms if outcome.places(measure, arm.name)]
        places = sorted({at for arm in arms for at in outcome.places(measure, arm)})
        rows = [[f"{at:,.10g}", *_show_row(outcome, measure, arms, at)] for at in places]
        tables.append(f"{measure.title}:\n\n{tabulate_markdown([measure.across, *arms], rows)}")
    return tables


def _show_row(outcome: Outcome, measure: Measure, arms: Sequence[str], at: float) -> list[str]:
    return [
        show_spread(measure, outcome.spread(measure, Side(arm, at)))
        if at in outcome.places(measure, arm)
        else ""
        for arm in arms
    ]


def describe_outcome(outcome: Outcome) -> list[str]:
    """Return lines for the terminal: question, table, verdicts, failures."""
    columns, rows = outcome.tabulate()
    lines = [outcome.study.question, ""]
    lines += align([[name.partition(" (")[0] for name in columns], *rows]) if rows else []
    lines += ["", *(verdict.describe() for verdict in outcome.verdicts)]
    for cell, failure in outcome.failures.items():
        lines.append(f"{cell.arm}, seed {cell.seed}, failed: {failure.message}")
    return [*lines, outcome.summarize(), outcome.study.caution]


def align(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Format rows as lines of aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
