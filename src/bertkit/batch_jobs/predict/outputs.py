"""Output formats of answers, by file extension."""

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
    """Format an answer as a line of JSON, without the newline."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


def write_jsonl(file: DurableFile, answers: Answers) -> None:
    """Write one JSON line per answer."""
    for answer in answers:
        file.write(f"{format_json(answer)}\n".encode())


def write_csv(file: DurableFile, answers: Answers) -> None:
    """Write a header of field names and one row per answer; nested values are JSON."""
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
    """Format a value as a CSV cell."""
    if isinstance(value, bool | dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


WRITERS: dict[str, Callable[[DurableFile, Answers], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
}


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise an error if the extension is unknown or the file exists and must not be replaced.

    Args:
        output: the file to write.
        overwrite: whether an existing file may be replaced.
    """
    if output.suffix.lower() not in WRITERS:
        raise SettingsError(
            f"{output} must end with {' or '.join(WRITERS)}, which selects the format"
        )
    check_new_file(output, overwrite=overwrite)
