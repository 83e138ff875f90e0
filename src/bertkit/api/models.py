"""Functions of a model's folder, which run no text through it: describe, export, report."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bertkit.api.inputs import take_path
from bertkit.api.settings import build, takes
from bertkit.base.extras import require_torch
from bertkit.jobs.export import ExportResult
from bertkit.jobs.export import export as run_export
from bertkit.jobs.inspect import ModelDescription, describe
from bertkit.jobs.settings import ExportSettings
from bertkit.recipes.settings import ReportSettings

if TYPE_CHECKING:
    from bertkit.api.keywords import ExportKeywords, ReportKeywords
    from bertkit.recipes.report.run import ReportResult


@takes()
def inspect(model: str | Path, *, revision: str | None = None) -> ModelDescription:
    """Describe a checkpoint: format, sizes, heads, parameters, labels, training, files, hashes.

    Args:
        model: a folder of any format, a run, or the id of a model of the Hub.
        revision: branch, tag or commit of a model of the Hub.

    Returns:
        The description; what is damaged stands in its `problems`.

    Raises:
        BertkitError: there is no such model.

    Examples:
        >>> bertkit.inspect("sentiment/").labels  # doctest: +SKIP
        ('negative', 'positive')
    """
    return describe(model, revision=revision)


@takes(ExportSettings)
def export(
    model: str | Path,
    *,
    output: str | Path,
    revision: str | None = None,
    **settings: "Unpack[ExportKeywords]",
) -> ExportResult:
    """Export a model as ONNX, with its heads and its tokenizer.

    Args:
        model: a run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        output: a new folder to write.
        revision: branch, tag or commit of a model of the Hub.

    Further keyword arguments: fields of `ExportSettings`.

    Returns:
        The result with `folder`, `outputs` and `files`.

    Raises:
        BertkitError: as in `bertkit.jobs.export.export`.

    Examples:
        >>> bertkit.export("sentiment/", output="onnx/").outputs  # doctest: +SKIP
        ('logits',)
    """
    chosen, place = build(ExportSettings, settings), take_path(output, "output")
    return run_export(take_path(model, "model"), place, chosen, revision=revision)


@takes(ReportSettings)
def report(
    run: str | Path,
    *others: str | Path,
    output: str | Path | None = None,
    **settings: "Unpack[ReportKeywords]",
) -> "ReportResult":
    """Write a report of a run: curves, speed, spikes, settings, machine, examples and next steps.

    Args:
        run: the folder of a run, of a fine-tuned model, or of a demo.
        others: more runs of the same kind, to compare.
        output: the page; by default report.html in the run, or for several runs comparison.html in
            the current folder.

    Further keyword arguments: fields of `ReportSettings`.

    Returns:
        The result with `report`, the page's path, and `runs`.

    Raises:
        BertkitError: as in `bertkit.recipes.report.run.report`.

    Examples:
        >>> bertkit.report("sentiment/", output="report.html").report  # doctest: +SKIP
        PosixPath('report.html')
    """
    require_torch("report")
    from bertkit.recipes.report.run import report as run_report

    chosen = build(ReportSettings, settings)
    paths = [take_path(one, "run") for one in (run, *others)]
    return run_report(paths, None if output is None else take_path(output, "output"), chosen)
