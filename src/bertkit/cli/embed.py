"""`bertkit embed`: embed a file of texts."""

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.embed.settings import EmbedSettings
from bertkit.cli.default_model import take_model_and_files
from bertkit.cli.output import check_standard_output
from bertkit.cli.results import list_problems
from bertkit.cli.texts import Words

if TYPE_CHECKING:
    from bertkit.batch_jobs.embed.run import EmbedResult

PROBLEMS = {
    "empty": "empty",
    "unknown_only": "with unknown words only",
    "truncated": "truncated to {max_length} tokens",
    "windowed": "split into windows of {max_length} tokens",
    "with_nul": "with NUL characters, which were removed",
    "undecodable": "with bytes that aren't UTF-8, which were removed",
}


def embed(
    *inputs: Words,
    model: str | None = None,
    output: Path | None = None,
    settings: Annotated[EmbedSettings, Parameter(name="*")] = EmbedSettings(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Embed each text of a file: row n of the output belongs to row n of the input.

    Reads plain text (one text per line), JSONL, CSV, TSV and Parquet, plain or as .gz, .bz2 and
    .zst, in constant memory. Folders, globs and several files are read one after another; .jsonl
    and .parquet then say which file and row a vector belongs to. Writes .npy, .parquet or .jsonl,
    and beside it a .json with the counts and everything that the vectors depend on. The same
    command resumes interrupted work.

    **Examples**

        bertkit embed texts.txt --output vectors.npy

        bertkit embed all-MiniLM-L6-v2/ texts.txt --output vectors.npy

        bertkit embed all-MiniLM-L6-v2/ reviews.csv.gz --text-column body --output vectors.parquet

        bertkit embed all-MiniLM-L6-v2/ notes/ --output vectors.jsonl

        bertkit embed run/ long.jsonl --pooling cls --long-texts window --output vectors.npy

        echo "One text." | bertkit embed all-MiniLM-L6-v2/ -

    Args:
        inputs: Files, folders or globs of texts, or - for standard input; of several arguments, the
            first is the model, unless --model names it.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        output: File for the vectors: .npy, .parquet or .jsonl. Without it, they are printed
            as JSONL, and the summary goes to standard error.
        settings: The settings of the command.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the summary as one JSON object.
    """
    model, texts = take_model_and_files(inputs, model)
    from bertkit.batch_jobs.embed.run import embed as run
    from bertkit.batch_jobs.embed.run import embed_lines

    if output is None:
        check_standard_output()
        if settings.restart or settings.overwrite:
            raise SettingsError("--restart and --overwrite need --output")
        from bertkit.data.tables.text_files import open_text_files
        from bertkit.embeddings.embedder import Embedder

        files = open_text_files(texts, settings)
        embedder = Embedder.load(model, settings, device=device, revision=revision)
        result = embed_lines(embedder, files, print)
        announce(_describe(result, json=json))
        return
    result = run(model, texts, output, settings, device=device, revision=revision)
    print(_describe(result, json=json))


def _describe(result: "EmbedResult", *, json: bool) -> str:
    """Format the summary as JSON or text."""
    if json:
        return json_module.dumps({**asdict(result), "output": result.output and str(result.output)})
    counts = result.counts
    name = result.output or "standard output"
    line = f"{pluralize(counts.texts, 'text')} → {name} [{result.num_rows}, {result.dimension}]"
    line += f", {pluralize(counts.tokens, 'token')}"
    if result.was_done:
        line += ", already done"
    else:
        line += f", {result.tokens_per_second:,.0f} per second"
    problems = ", ".join(list_problems(counts, PROBLEMS, max_length=result.max_length))
    if not counts.texts:
        problems = "WARNING: the input is empty"
    return "; ".join(filter(None, (line, problems)))
