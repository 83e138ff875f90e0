"""Results of a command: output files, problems of texts, metrics, and pages to open."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.base.errors import SettingsError
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.cli.output import check_standard_output

if TYPE_CHECKING:
    from bertkit.batch_jobs.convert.run import ConvertResult
    from bertkit.batch_jobs.export.run import ExportResult

METRIC_WORDS = {"mlm": "masked", "clm": "next-word", "word": "next-word"}


def open_result(
    output: Path | None,
    activity: str,
    source: str | None,
    check: Callable[..., None],
    *,
    overwrite: bool,
    is_workplace: bool = False,
) -> AbstractContextManager[Path | None]:
    """Lock the output, if there is one; errors as in `open_output`.

    Raises:
        SettingsError: `overwrite` is set without an output.
        StorageError: the result would be printed, and standard output is closed.
    """
    if output is not None:
        inputs = () if source is None else (source,)
        check_place = partial(check, overwrite=overwrite)
        return open_output(
            output, activity, inputs=inputs, check=check_place, is_workplace=is_workplace
        )
    check_standard_output()
    if overwrite:
        raise SettingsError("--overwrite needs --output")
    return nullcontext()


def list_problems(
    counts: object,
    descriptions: Mapping[str, str],
    *,
    max_length: int | None = None,
    num_undecodable: int = 0,
) -> list[str]:
    """Describe the problems of texts that were counted.

    Args:
        counts: has the number of each problem as an attribute.
        descriptions: the description of each problem, by the name of its count.
        max_length: maximum number of tokens of a text, for the descriptions.
        num_undecodable: number of texts with bytes that aren't UTF-8.
    """
    problems = [
        f"{number:,} {words.format(max_length=max_length)}"
        for name, words in descriptions.items()
        if (number := getattr(counts, name, 0))
    ]
    if num_undecodable:
        problems.append(f"{num_undecodable:,} with bytes that aren't UTF-8, read as \ufffd")
    return problems


def describe_folder(result: "ConvertResult | ExportResult") -> str:
    """Format the result of writing a folder as JSON, with size and SHA-256 of each file."""
    files = {
        name: {"size_bytes": record.size_bytes, "sha256": record.sha256}
        for name, record in result.files.items()
    }
    return json.dumps({**vars(result), "folder": str(result.folder), "files": files})


def describe_metrics(metrics: Mapping[str, Any]) -> str:
    """Describe loss, accuracies and perplexity, those that exist."""
    parts = [f"loss {metrics['loss']:.3f}"]
    for name, words in METRIC_WORDS.items():
        if f"{name}_accuracy" in metrics:
            perplexity = metrics.get(f"{name}_perplexity")
            more = "" if perplexity is None else f" (perplexity {perplexity:,.1f})"
            parts.append(f"{words} accuracy {metrics[f'{name}_accuracy']:.1%}{more}")
    if "nsp_accuracy" in metrics:
        parts.append(f"next-sentence accuracy {metrics['nsp_accuracy']:.1%}")
    return ", ".join(parts)


def open_in_browser(page: Path) -> None:
    """Open a page in the browser; announce its path if there is none."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        announce(f"no browser was found; open {page} in one")
