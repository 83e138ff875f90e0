"""`bertkit export`: export a model for other programs."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.base.wording import pluralize
from bertkit.batch_jobs.export.settings import ExportSettings
from bertkit.cli.results import describe_folder


def export(
    model: str,
    /,
    *,
    output: Path,
    settings: Annotated[ExportSettings, Parameter(name="*")] = ExportSettings(),  # noqa: B008
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Export a model as ONNX, with its heads and its tokenizer.

    ONNX Runtime and other programs run the file without bertkit. The folder is also a model folder
    of bertkit: every command that takes the model takes it.

    **Examples**

        bertkit export sentence-transformers/all-MiniLM-L6-v2 --output minilm-onnx/

        bertkit export sentiment/ --precision int8 --output sentiment-int8/

        bertkit export run/ --encoder-only --output encoder-onnx/ --json

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        output: A new folder to write.
        settings: The settings of the command.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.batch_jobs.export.run import export as run

    result = run(model, output, settings, revision=revision)
    if json:
        print(describe_folder(result))
        return
    print(
        f"{result.folder}: {result.target}, {settings.precision}; outputs"
        f" {', '.join(result.outputs)};"
        f" {pluralize(len(result.files), 'file')}, {result.size_bytes / 1e6:,.1f} MB"
    )
    for note in result.notes:
        print(f"note: {note}")
