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
    """Export a model as ONNX, with its tokenizer.

    Exports the encoder and its pooler and, for a sentence-transformers model, its modules for
    sentence embeddings. Other heads aren't exported.

    **Examples**

        bertkit export sentence-transformers/all-MiniLM-L6-v2 --to onnx --output minilm-onnx/

        bertkit export run/ --output my-model-onnx/ --json

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
        f"{result.folder}: {result.target} with outputs {', '.join(result.outputs)};"
        f" {pluralize(len(result.files), 'file')}, {result.size_bytes / 1e6:,.1f} MB"
    )
    for note in result.notes:
        print(f"note: {note}")
