"""Reading of untrusted JSON, and writing of JSON files that survive a crash."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError
from bertkit.base.files import read_text, write_file

MAX_JSON_VALUES = 1 << 20  # a tokenizer.json of the largest vocabulary has half as many


def write_json(path: Path, content: object) -> FileRecord:
    """Write indented JSON in UTF-8, with keys in the given order."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # File names may hold bytes that aren't UTF-8; written as \udcXX, they are still valid JSON.
    return write_file(path, (text + "\n").encode(errors="backslashreplace"))


def with_nulls(value: Any) -> Any:
    """Replace NaN and infinity by None, which JSON can represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: with_nulls(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(part) for part in value]
    return value


def read_json(path: Path, *, limit_bytes: int = 64 << 20) -> JsonValue:
    """Read an untrusted JSON file of up to `limit_bytes`; a fault is a `DamagedFileError`."""
    return parse_json(read_text(path, limit_bytes=limit_bytes), str(path))


def parse_json(
    text: str | bytes, source: str, *, max_values: int = MAX_JSON_VALUES, has_nan: bool = False
) -> JsonValue:
    """Parse untrusted JSON; `source` names it in messages.

    Args:
        max_values: bound on values, which take far more memory than their text. Commas and opening
            brackets are counted for them, those in strings too.
        has_nan: whether numbers that aren't finite, with which Python and pandas write missing
            values, are None.

    Raises:
        DamagedFileError: it isn't UTF-8 or JSON, or has a duplicate key, a number that isn't
            finite, or more than `max_values` commas and opening brackets.
    """

    def read_number(text: str) -> float | None:
        number = float(text)
        if math.isfinite(number):
            return number
        if has_nan:
            return None
        raise ValueError(f"{text[:80]} isn't a JSON number")

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        num_marks = text.count(",") + text.count("[") + text.count("{")
        if num_marks > max_values:
            raise DamagedFileError(
                f"{source} has {num_marks:,} commas and brackets; at most {max_values:,} are read"
            )
        content: JsonValue = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_float=read_number,
            parse_constant=read_number,  # NaN and Infinity, which Python's parser accepts
        )
        return content
    except DamagedFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{source} isn't JSON ({error}); write or fetch it again") from None


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    content = dict(pairs)
    if len(content) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} appears twice")
    return content
