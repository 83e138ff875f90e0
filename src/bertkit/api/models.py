"""Functions of a model's folder, which run no text through it: describe, export, report."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import SkipValidation

from bertkit.api.inputs import take_path
from bertkit.api.settings import Call, ends_in_one_line, takes
from bertkit.base.settings import select, validate
from bertkit.jobs.export import ExportResult
from bertkit.jobs.export import export as run_export
from bertkit.jobs.inspect import ModelDescription, describe
from bertkit.jobs.settings import ExportSettings
from bertkit.recipes.report.run import ReportResult
from bertkit.recipes.report.run import report as run_report
from bertkit.recipes.settings import ReportSettings


@ends_in_one_line
def inspect(
    model: str | Path, *, revision: str | None = None, hashes: bool = True
) -> ModelDescription:
    """Describe a checkpoint: format, sizes, heads, parameters, labels, training, files, hashes.

    Args:
        model: a folder of any format, a run, or the id of a model of the Hub.
        revision: branch, tag or commit of a model of the Hub.
        hashes: compute the SHA-256 of each file.

    Returns:
        The description; what is damaged stands in its `problems`.

    Raises:
        BertkitError: there is no such model.

    Examples:
        >>> bertkit.inspect("sentiment/").labels  # doctest: +SKIP
        ('negative', 'positive')
    """
    return describe(model, revision=revision, hashes=hashes)


class ExportCall(ExportSettings, Call):
    """The keyword arguments of `export`."""

    output: SkipValidation[str | Path]
    revision: str | None = None


@takes(ExportCall)
def export(call: ExportCall, model: str | Path) -> ExportResult:
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
    place = take_path(call.output, "output")
    chosen = select(ExportSettings, call)
    return run_export(take_path(model, "model"), place, chosen, revision=call.revision)


@ends_in_one_line
def report(
    run: str | Path,
    *others: str | Path,
    output: str | Path | None = None,
    data: str | Path | None = None,
    text: Sequence[str] = (),
    examples: bool = True,
    overwrite: bool = False,
) -> ReportResult:
    """Write a report of a run: curves, speed, spikes, settings, machine, examples and next steps.

    Args:
        run: the folder of a run, of a fine-tuned model, or of a demo.
        others: more runs of the same kind, to compare.
        output: the page; by default report.html in the run, or for several runs comparison.html in
            the current folder.
        data, text, examples, overwrite: the fields of `ReportSettings`.

    Returns:
        The result with `report`, the page's path, and `runs`.

    Raises:
        BertkitError: as in `bertkit.recipes.report.run.report`.

    Examples:
        >>> bertkit.report("sentiment/", output="report.html").report  # doctest: +SKIP
        PosixPath('report.html')
    """
    settings = {"data": data, "text": text, "examples": examples, "overwrite": overwrite}
    chosen = validate(ReportSettings, settings, "report")
    paths = [take_path(one, "run") for one in (run, *others)]
    return run_report(paths, None if output is None else take_path(output, "output"), chosen)
