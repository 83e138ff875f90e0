"""`bertkit convert`: convert a checkpoint of any format into a Hugging Face folder."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.base.wording import pluralize
from bertkit.batch_jobs.convert.settings import ConvertSettings
from bertkit.cli.results import describe_folder


def convert(
    source: str,
    output: Path,
    /,
    *,
    settings: Annotated[ConvertSettings, Parameter(name="*")] = ConvertSettings(),  # noqa: B008
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Convert a checkpoint of any format into a Hugging Face folder, with all its heads.

    Reads Hugging Face folders (safetensors or .bin, single or sharded), Google's TensorFlow
    checkpoints, sentence-transformers folders, runs of `bertkit pretrain`, and models of the Hub.

    **Examples**

        bertkit convert uncased_L-12_H-768_A-12/ bert-base/

        bertkit convert old-model/ new-model/ --dtype bfloat16

        bertkit convert google-bert/bert-base-uncased bert-base/ --revision main

    Args:
        source: A folder of any format, a run, or the id of a model of the Hub.
        output: A new folder to write.
        settings: The settings of the command.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.batch_jobs.convert.run import convert as run

    result = run(source, output, settings, revision=revision)
    if json:
        print(describe_folder(result))
        return
    heads = ", ".join(result.heads) or "no heads"
    dtypes = " and ".join(result.dtypes)
    print(
        f"{result.folder}: {result.architecture} ({heads}), {result.num_parameters:,} parameters"
        f" as {dtypes}, {pluralize(len(result.files), 'file')}, {result.size_bytes / 1e6:,.1f} MB"
    )
    if result.dropped:
        print(f"dropped, because they are copies or not weights: {', '.join(result.dropped)}")
    for note in result.notes:
        print(f"note: {note}")
