"""`bertkit report`: runs, finished or not → a page with curves, speed, settings and examples."""

import json as json_module
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.base.progress import announce
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
    """Show how a run went: curves, speed, spikes, settings, machine, examples, and what is next.

    Takes what `bertkit pretrain`, `finetune` and `demo` write, also while they are still at it: the
    run is only read. With several runs their curves share axes, and a table says in which settings
    they differ. The page is one file that opens without a network.

    **Examples**

        bertkit report run/ --open

        bertkit report run/ --text "The capital is [MASK]." --output run.html

        bertkit report run-a/ run-b/ run-c/ --output comparison.html

    Args:
        run: The folder of a run, of a fine-tuned model, or of a demo.
        others: More of the same kind, to be compared.
        output: The page; by default report.html in the run, of several comparison.html here.
        settings: Settings.
        open_page: Show the page in the browser.
        json: Print the runs in numbers as one JSON object.
    """
    from bertkit.run_reports.page import summarize
    from bertkit.run_reports.run import report as write
    from bertkit.run_reports.run import summarize_run

    result = write((run, *others), output, settings)
    if open_page and not webbrowser.open(result.report.resolve().as_uri()):
        announce(f"no browser was found; open {result.report} with one")
    if json:
        runs = [summarize_run(facts) for facts in result.runs]
        print(json_module.dumps({"report": str(result.report), "runs": runs}))
        return
    for facts in result.runs:
        print(legible(f"{facts.path}: {summarize(facts)}"))
    print(legible(f"Report: {result.report.resolve()}"))
