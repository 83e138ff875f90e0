"""Write the report of a run, or of several: common axes, and the settings that differ."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import fmean, median
from typing import Any

from pydantic import JsonValue

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.files import check_new_file
from bertkit.base.output import open_output
from bertkit.recipes.finetune.comparison import describe_spread
from bertkit.recipes.report.facts import RunFacts, find_run, read_facts
from bertkit.recipes.report.page import (
    MEANS,
    build_page,
    choose_all_curves,
    last_metrics,
    list_sizes,
    name_metric,
    name_metrics,
    show_examples,
)
from bertkit.recipes.settings import ReportSettings
from bertkit.reports.figures.svg import NUM_STYLES
from bertkit.reports.report import Charts, Paragraph, Report, Section, Table, write_report
from bertkit.reports.text import Cell, is_share, make_legible, shorten
from bertkit.training.sections import LOSS, MINUTES, PACE, SPEED, compare_curves


def build_comparison(runs: Sequence[RunFacts]) -> Report:
    """Build the page."""
    kinds = {facts.kind: facts.path for facts in runs}
    if len(kinds) > 1:
        (first, one), (second, another), *_ = kinds.items()
        raise InputError(
            f"{one} is of `bertkit {first}` and {another} of `bertkit {second}`; compare runs of"
            " one kind"
        )
    courses = [(str(facts.path), facts.history) for facts in runs]
    curves = {curve.name: curve for facts in runs for curve in choose_all_curves(facts)}
    sections: list[Section] = [
        tabulate_results(runs),
        *tabulate_seeds(runs),
        Charts(
            compare_curves(courses, list(curves.values())),
            title="Training curves",
            note=MEANS,
        ),
        Charts(compare_curves(courses, [LOSS], MINUTES), title="Training curves over time"),
        Charts(compare_curves(courses, [*PACE, *SPEED]), title="Learning rate, gradient, speed"),
        tabulate_differences(
            "Differing settings",
            runs,
            lambda facts: facts.record.settings,
            lambda facts: facts.settings,  # models without their parent folders
        ),
        tabulate_differences(
            "Differing versions and machines", runs, lambda facts: facts.record.versions
        ),
        tabulate_differences("Differing model configs", runs, list_sizes),
    ]
    return Report(
        title=state_best(runs),
        summary=f"Curves on common axes, and the settings that differ. {describe_data(runs)}",
        sections=[each for each in sections if not isinstance(each, Charts) or each.charts],
        name=f"{pluralize(len(runs), 'run')} of bertkit {runs[0].kind}",
    )


def state_best(runs: Sequence[RunFacts]) -> str:
    """State which run ends best, by the first share that all have, or by the loss.

    Runs that differ only in their seed count together, by their mean.
    """
    found = [last_metrics(facts) for facts in runs]
    common = [name for name in found[0] if all(name in each for each in found)]
    if not common:
        return "The runs can’t be compared yet: not all have been evaluated with one metric"
    if len({facts.record.data_fingerprint for facts in runs}) > 1:
        return f"{pluralize(len(runs), 'run')} on different data"
    name = next(filter(is_share, common), common[0])
    values = {
        group: [last_metrics(facts)[name] for facts in members]
        for group, members in group_seeds(runs).items()
    }
    ranked = sorted(values, key=lambda group: fmean(values[group]), reverse=is_share(name))
    best, *others = ((group, describe_spread(name, values[group])) for group in ranked)
    shown = f"{name_metric(name, *runs)} {best[1]}"
    if not others:
        return f"{best[0]}: {shown}"
    second = others[0]
    if best[1] == second[1]:
        return f"{best[0]} and {second[0]} end alike: {shown}"
    note = "; one seed each" if len(ranked) == len(runs) else ""
    return f"{best[0]} ends best: {shown} ({second[0]}: {second[1]}{note})"


def group_seeds(runs: Sequence[RunFacts]) -> dict[str, list[RunFacts]]:
    """Group runs that differ only in their seed, by the name of the first and their number."""
    groups: defaultdict[str, list[RunFacts]] = defaultdict(list)
    for facts in runs:
        others = {**facts.record.settings, "seed": None, "data": facts.record.data_fingerprint}
        groups[repr(sorted(others.items()))].append(facts)
    return {
        f"{group[0].path}" + (f" ({len(group)} seeds)" if len(group) > 1 else ""): group
        for group in groups.values()
    }


def tabulate_seeds(runs: Sequence[RunFacts]) -> list[Table]:
    """Tabulate the means of runs that differ only in their seed; nothing if there are none."""
    groups = group_seeds(runs)
    if len(groups) == len(runs):
        return []
    found = [last_metrics(facts) for facts in runs]
    names = [name for name in found[0] if all(name in each for each in found)]
    rows: list[list[Cell]] = [
        [
            group,
            *(
                describe_spread(name, [last_metrics(facts)[name] for facts in members])
                for name in names
            ),
        ]
        for group, members in groups.items()
    ]
    return [Table(["Runs", *(name_metric(name, *runs) for name in names)], rows, title="Seeds")]


def tabulate_results(runs: Sequence[RunFacts]) -> Table:
    """Tabulate the progress of each run and its last metrics on held-out data."""
    names = list(dict.fromkeys(name for facts in runs for name in name_metrics(facts)))
    rows: list[list[Cell]] = []
    for facts in runs:
        train, found = facts.history.train, last_metrics(facts)
        seconds = train.last("elapsed_seconds")
        rows.append(
            [
                str(facts.path),
                f"{facts.history.num_steps:,} of {facts.record.num_steps:,}",
                train.last("tokens") or 0.0,
                math.nan if seconds is None else seconds / 60,
                *(found.get(name, math.nan) for name in names),
            ]
        )
    return Table(
        ["Run", "Steps", "Tokens", "Minutes", *(name_metric(name, *runs) for name in names)],
        rows,
        title="Results",
        note="Metrics are the latest on held-out data.",
    )


def tabulate_differences(
    title: str,
    runs: Sequence[RunFacts],
    list_values: Callable[[RunFacts], Mapping[str, JsonValue]],
    list_shown: Callable[[RunFacts], Mapping[str, JsonValue]] | None = None,
) -> Section:
    """Tabulate the values that differ between runs, as `list_shown` displays them."""
    values = [list_values(facts) for facts in runs]
    shown = values if list_shown is None else [list_shown(facts) for facts in runs]
    names = list(dict.fromkeys(name for each in values for name in each))
    rows: list[list[Cell]] = [
        [name, *_number_different(values, [_show(each, name) for each in shown], name)]
        for name in names
        if any(each.get(name) != values[0].get(name) or name not in each for each in values)
    ]
    if not rows:
        return Paragraph("None.", title=title)
    return Table(["Name", *(str(facts.path) for facts in runs)], rows, title)


def describe_data(runs: Sequence[RunFacts]) -> str:
    """Say whether the runs are comparable."""
    if len({facts.objective for facts in runs}) > 1:
        return (
            "The runs have different objectives (--objective), so their losses aren’t comparable;"
            " their speeds, and models fine-tuned from them, are."
        )
    if len({facts.record.data_fingerprint for facts in runs}) == 1:
        return "All runs train on the same data and are evaluated on the same held-out part."
    return (
        "The runs train on different data, so their curves may differ because of the data and not"
        " because of their settings."
    )


def _number_different(
    values: Sequence[Mapping[str, JsonValue]], cells: list[str], name: str
) -> list[str]:
    """Number cells whose different values look alike because folders aren't shown."""
    kinds = list(dict.fromkeys(repr(each.get(name)) for each in values))
    if len(set(cells)) >= len(kinds):
        return cells
    return [
        f"{cell} ({kinds.index(repr(each.get(name))) + 1})"
        for each, cell in zip(values, cells, strict=True)
    ]


def _show(values: Mapping[str, JsonValue], name: str) -> str:
    if name not in values:
        return "absent"
    value = values[name]
    return "none" if value is None else shorten(make_legible(str(value)), 200)


REPORT_FILE, COMPARISON_FILE = "report.html", "comparison.html"
ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class ReportResult:
    """The result of writing a report."""

    report: Path
    runs: tuple[RunFacts, ...]


def report(
    paths: Sequence[Path], output: Path | None = None, settings: ReportSettings | None = None
) -> ReportResult:
    """Write a page on one run, or one that compares several; runs are read, never changed.

    `paths` are runs of `bertkit pretrain`, models of `bertkit finetune` and folders of `bertkit
    demo`; several must be of one kind. The page is by default `report.html` in the run, or
    `comparison.html` here.
    """
    settings = ReportSettings() if settings is None else settings
    if not 1 <= len(paths) <= NUM_STYLES:
        raise SettingsError(f"expected one run, or up to {NUM_STYLES} to compare, got {len(paths)}")
    if len(paths) > 1 and (settings.data is not None or settings.text):
        raise SettingsError("data and text are for the report of one run; leave them out")
    if output is None:
        is_single = len(paths) == 1
        output = find_run(paths[0]).folder / REPORT_FILE if is_single else Path(COMPARISON_FILE)
    check = partial(check_output, overwrite=settings.overwrite)
    with open_output(output, "writing a report into", check=check) as place:
        runs = tuple(read_facts(path, settings.data) for path in paths)
        facts = runs[0]
        if facts.task is not None and settings.text:
            raise SettingsError(
                f"text is for pre-training runs, and {facts.path} is of `bertkit {facts.kind}`;"
                " leave it out"
            )
        if len(runs) > 1:
            page = build_comparison(runs)
        else:
            has_examples = facts.task is None and settings.examples
            page = build_page(facts, show_examples(facts, settings) if has_examples else [])
        write_report(place, page)
    return ReportResult(place, runs)


def check_output(output: Path, *, overwrite: bool) -> None:
    """Check that the output is a page, and replaces a file only if asked to."""
    if output.suffix.lower() not in ENDINGS:
        raise SettingsError(f"{output} must end in .html")
    check_new_file(output, overwrite=overwrite)


def summarize_run(facts: RunFacts) -> dict[str, Any]:
    """Return a run in numbers, for programs; null where there is none."""
    history, record = facts.history, facts.record
    speeds = list(filter(isfinite, history.train["tokens_per_second"]))
    return {
        "run": str(facts.run.folder),
        "kind": facts.kind,
        "step": history.num_steps,
        "num_steps": record.num_steps,
        "is_finished": facts.is_finished,
        "tokens": history.train.last("tokens"),
        "elapsed_seconds": history.train.last("elapsed_seconds"),
        "tokens_per_second": median(speeds) if speeds else None,
        "held_out": last_metrics(facts),
        "incidents": dict(history.num_incidents),
    }
