"""The forms in which answers are written, by the ending of the file's name."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bertkit.base.errors import SettingsError
from bertkit.base.files import DurableFile, check_new_file

Answers = Iterable[dict[str, Any]]


def format_json(answer: dict[str, Any]) -> str:
    """An answer as a line of JSON, without its end."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


def write_jsonl(file: DurableFile, answers: Answers) -> None:
    """A line an answer."""
    for answer in answers:
        file.write(f"{format_json(answer)}\n".encode())


def write_csv(file: DurableFile, answers: Answers) -> None:
    """A row an answer under the names of its parts; a part with parts of its own is JSON."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for number, answer in enumerate(answers):
        if number == 0:
            writer.writerow(answer)
        writer.writerow(map(format_cell, answer.values()))
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()


def format_cell(value: Any) -> Any:
    """A value as a cell of CSV."""
    if isinstance(value, bool | dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


WRITERS: dict[str, Callable[[DurableFile, Answers], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
}


def check_output(output: Path, *, overwrite: bool) -> None:
    """Refuse a file whose name doesn't say its form, or that isn't to be replaced.

    Args:
        output: the file to be written.
        overwrite: whether an output that exists is replaced.
    """
    if output.suffix.lower() not in WRITERS:
        raise SettingsError(f"{output} must end with {' or '.join(WRITERS)}, which says its form")
    check_new_file(output, overwrite=overwrite)
