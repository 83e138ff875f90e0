"""`bertkit report`: write a report of runs."""

import json as json_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.cli.results import open_in_browser
from bertkit.cli.texts import legible
from bertkit.run_reports.settings import ReportSettings


def report(
    run: Path,
    /,
    *others: Path,
    output: Path | None = None,
    settings: Annotated[ReportSettings, Parameter(name="*")] = ReportSettings(),  # noqa: B008
    open_page: Annotated[bool, Parameter(name="--open", negative=())] = False,
    json: bool = False,
) -> None:
    """Write a report of a run: curves, speed, spikes, settings, machine, examples and next steps.

    Takes output folders of `bertkit pretrain`, `finetune` and `demo`, also of runs in progress,
    which aren't changed. For several runs, curves share axes, and a table lists the settings that
    differ. The page is one file that needs no network.

    **Examples**

        bertkit report run/ --open

        bertkit report run/ --text "The capital is [MASK]." --output run.html

        bertkit report run-a/ run-b/ run-c/ --output comparison.html

    Args:
        run: The folder of a run, of a fine-tuned model, or of a demo.
        others: More runs of the same kind, to compare.
        output: File for the page; by default report.html in the run, or for several runs
            comparison.html in the current folder.
        settings: The settings of the command.
        open_page: Show the page in the browser.
        json: Print the figures of the runs as one JSON object.
    """
    from bertkit.run_reports.page import summarize
    from bertkit.run_reports.run import report as write
    from bertkit.run_reports.run import summarize_run

    result = write((run, *others), output, settings)
    if open_page:
        open_in_browser(result.report)
    if json:
        runs = [summarize_run(facts) for facts in result.runs]
        print(json_module.dumps({"report": str(result.report), "runs": runs}))
        return
    for facts in result.runs:
        print(legible(f"{facts.path}: {summarize(facts)}"))
    print(legible(f"Report: {result.report.resolve()}"))
