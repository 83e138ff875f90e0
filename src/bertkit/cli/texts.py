"""Texts from the command line: arguments, a file, or standard input."""

import re
import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.output import check_standard_output, open_output
from bertkit.base.progress import announce, show_progress
from bertkit.base.settings import replace_surrogates
from bertkit.data.input_files import exists
from bertkit.data.problems import describe_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import MEMORY, TextTable, hold_texts, open_texts
from bertkit.reports.text import format_number
from bertkit.tasks.metrics.shares import METRIC_WORDS, describe_share

if TYPE_CHECKING:
    from bertkit.checkpoints.bundled import Part
    from bertkit.inference.pipeline import Pipeline
    from bertkit.inference.stream import InputCounts

Result = TypeVar("Result")

NO_TEXT = "there is no text: give one as an argument, --file, or - for standard input"
ONE_SOURCE = "give texts or --file, not both; - alone is standard input"
UNDECODABLE = "{:,} with bytes that aren't UTF-8, read as \ufffd"
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}"
OLD_ID = re.compile(r"bert-(base|large)-[a-z-]+")  # of the Hub's first years, without an owner
OPTION = re.compile(r"--[a-z][a-z0-9_-]*(=.*)?", re.DOTALL | re.IGNORECASE)
PROBLEMS = {
    "empty": "empty",
    "unknown_only": "with unknown words only",
    "truncated": "truncated to {max_length} tokens",
    "windowed": "split into windows of {max_length} tokens",
    "with_nul": "with NUL characters",
    "undecodable": "with bytes that aren't UTF-8, read as \ufffd",
}


class MisspelledOptionError(SettingsError):
    """A word among texts looks like an option; the message is the word."""


def refuse_options(_: type, word: str | None) -> None:
    """Refuse a misspelled flag where a text is expected; an omitted text is None."""
    if word is not None and OPTION.fullmatch(word):
        raise MisspelledOptionError(word)


NamedModel = Annotated[
    str | None,
    Parameter(
        help="A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by"
        " default the model that comes with bertkit."
    ),
]
TextFile = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help="File of texts or rows: plain text (one per line), JSONL, CSV, TSV, Parquet or .xlsx;"
        " also .gz, .bz2 or .zst.",
    ),
]
# Arguments that may begin with a hyphen; where several are accepted, a lone - is standard input.
Words = Annotated[str, Parameter(allow_leading_hyphen=True, validator=refuse_options)]


def open_input(
    texts: Sequence[str], file: str | None, reading: TableSettings | None = None
) -> TextTable:
    """Return the texts of a command: those given, or those of a file or of standard input."""
    source = find_source(texts, file)
    return hold_texts(replace_surrogates(texts)) if source is None else open_texts(source, reading)


def list_texts(texts: Sequence[str], file: str | None) -> list[str]:
    """Return all texts, given or in a file; blank rows of a file are left out."""
    return [text for _, text, _ in gather_texts(open_input(texts, file))]


def gather_texts(table: TextTable) -> Iterator[tuple[str, str, int]]:
    """Return an iterator over texts, each after its name in messages and before its size in bytes.

    Blank rows of a file are left out. The first text is read at once, so that a file of none, or
    without a column of texts, is an error before a model is loaded.
    """
    gathered = (
        (table.place(number), row.text, row.num_bytes)
        for number, row in enumerate(table.rows(), start=1)
        if table.format == MEMORY or row.text.strip()
    )
    first = next(gathered, None)
    if first is None:
        raise InputError(f"{table.name} has no text")
    return chain([first], gathered)


def stream_results(
    pipeline: "Pipeline[str, Result]",
    table: TextTable,
    named: Iterable[tuple[str, str, int]],
    activity: str,
    *,
    is_hidden: bool = False,
    counts: "InputCounts | None" = None,
) -> "Iterator[Result]":
    """Yield the result of each text of a table, with a progress bar over their bytes."""
    from bertkit.inference.pipeline import NamedInput

    sizes: deque[int] = deque()

    def read() -> Iterator[NamedInput]:
        for name, text, num_bytes in named:
            sizes.append(num_bytes)
            yield NamedInput(name, text)

    size = table.size_bytes
    with show_progress(activity, size, is_bytes=True, is_hidden=is_hidden) as progress:
        for result in pipeline.stream(read(), counts=counts):
            yield result
            progress.advance(sizes.popleft())
    if table.num_undecodable:
        announce(f"{table.name}: {UNDECODABLE.format(table.num_undecodable)}")


def find_source(
    texts: Sequence[str], file: str | None, *, has_other_inputs: bool = False
) -> str | None:
    """Return the file to read, - for standard input; None if texts were given."""
    is_given = bool(texts) or has_other_inputs
    is_fed = sys.stdin is not None and not sys.stdin.isatty()  # rather than a terminal
    if len(texts) > 1 and "-" in texts:
        raise SettingsError(ONE_SOURCE)
    if file is None and (tuple(texts) == ("-",) or (not is_given and is_fed)):
        file, is_given = "-", has_other_inputs
    if file is not None and is_given:
        raise SettingsError(ONE_SOURCE)
    if file is None and not is_given:
        raise InputError(NO_TEXT)
    return file


def printable(text: str) -> str:
    """Replace control characters of a text, so that it can't control the terminal."""
    return "".join(map(_show, text))


def legible(text: str) -> str:
    """Replace control characters except line feeds and tabs."""
    return "".join(letter if letter in "\n\t" else _show(letter) for letter in text)


def _show(letter: str) -> str:
    is_text = letter.isprintable() or letter in JOINERS or unicodedata.category(letter) == "Zs"
    return letter if is_text else "\N{REPLACEMENT CHARACTER}"


def choose_model(
    model: str | None, part: "Part", inputs: Sequence[str] = (), file: str | Path | None = None
) -> str:
    """Return the model that --model names, or else the bundled one.

    Args:
        part: of the bundled model.
        inputs: arguments that are texts or files. Without --model, one that is a model's folder,
            or an id such as owner/name in front of others, is refused.
        file: where further texts are, if anywhere.
    """
    from bertkit.checkpoints.bundled import find_bundled
    from bertkit.checkpoints.hub import check_model, is_hub_id
    from bertkit.checkpoints.run_folder import is_model_folder

    if model is not None:
        check_model(model)
        return model
    for given in filter(None, inputs):  # an empty text isn't the current folder
        if is_model_folder(given):
            raise SettingsError(f"{given} is a model; name it with --model {given}")
    first = next(iter(inputs), "")
    has_others = len(inputs) > 1 or file is not None
    is_id = is_hub_id(first) if "/" in first else OLD_ID.fullmatch(first) is not None
    if has_others and is_id and not exists(first):
        raise SettingsError(
            f"{first} looks like the id of a model; name it with --model {first}, or, if it is"
            " no model, name the one to use with --model"
        )
    folder = find_bundled(part)
    announce("with the model that comes with bertkit; --model names another")
    return str(folder)


def name_again(model: str) -> list[str]:
    """Return the flag that names a model in a further command; none for the bundled one."""
    from bertkit.checkpoints.bundled import PACKAGE

    return [] if Path(model).parent.name == PACKAGE else ["--model", model]


def open_result(
    output: Path | None,
    activity: str,
    source: str | Sequence[str] | None,
    check: Callable[..., None],
    *,
    overwrite: bool,
    is_workplace: bool = False,
) -> AbstractContextManager[Path | None]:
    """Lock the output, if there is one; otherwise check that the result can be printed."""
    if output is not None:
        inputs = (source,) if isinstance(source, str) else source or ()
        check_place = partial(check, overwrite=overwrite)
        return open_output(
            output, activity, inputs=inputs, check=check_place, is_workplace=is_workplace
        )
    check_standard_output()
    if overwrite:
        raise SettingsError("--overwrite needs --output")
    return nullcontext()


def list_problems(
    counts: "InputCounts",
    descriptions: Mapping[str, str] = PROBLEMS,
    *,
    max_length: int | None = None,
    num_undecodable: int = 0,
) -> list[str]:
    """Describe the problems of texts that were counted, each by the name of its count."""
    problems = [
        f"{number:,} {words.format(max_length=max_length)}"
        for name, words in descriptions.items()
        if (number := getattr(counts, name, 0))
    ]
    if num_undecodable:
        problems.append(UNDECODABLE.format(num_undecodable))
    return problems + describe_unknown(counts.unknown_tokens, counts.text_tokens)


def describe_metrics(metrics: Mapping[str, float]) -> str:
    """Describe loss, accuracies and perplexity, those that exist."""
    parts = [f"loss {format_number(metrics['loss'])}"]
    for name, words in METRIC_WORDS.items():
        if f"{name}_accuracy" in metrics:
            perplexity = metrics.get(f"{name}_perplexity")
            more = "" if perplexity is None else f", perplexity {perplexity:,.1f}"
            parts.append(f"{words} accuracy {describe_share(metrics, f'{name}_accuracy')}{more}")
    return ", ".join(parts)


def open_in_browser(page: Path) -> None:
    """Open a page in the browser; announce its path if there is none."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        announce(f"no browser was found; open {page} in one")
