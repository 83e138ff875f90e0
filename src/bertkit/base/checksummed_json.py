"""JSON files and log rows whose last field is a checksum of the bytes before it.

Both forms are plain JSON for people and other tools. A document ends with a SHA-256, a row of a log
with a CRC-32. The checksum covers all bytes before it, and the bytes of the checksum field itself
are compared exactly, so a flipped bit anywhere is detected, even in a key or in white space.
"""

import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, DamagedFileError
from bertkit.base.files import read_text, write_file
from bertkit.base.settings import validate

DOCUMENT_SEAL = re.compile(r',\n  "sha256": "[0-9a-f]{64}"\n}\n')


def write_checksummed_json(path: Path, content: dict[str, Any]) -> FileRecord:
    """Write a JSON object, indented, with its SHA-256 as the last field, atomically."""
    assert content
    assert "sha256" not in content
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # File names may hold bytes that aren't UTF-8; written as \udcXX, they are still valid JSON.
    body = text.removesuffix("\n}").encode(errors="backslashreplace")
    return write_file(path, body + _document_seal(body).encode())


def read_checksummed_json(path: Path, *, limit_bytes: int = 64 << 20) -> dict[str, Any]:
    """Read a file written by `write_checksummed_json`; return its content without the checksum."""
    text = read_text(path, limit_bytes=limit_bytes)
    found = DOCUMENT_SEAL.fullmatch(text, max(0, len(text) - len(_document_seal(b""))))
    if found is None:
        raise DamagedFileError(
            f"{path} doesn't end with its SHA-256: it was altered, cut short, or written by an"
            " older bertkit; restore it or make it again"
        )
    if found.group() != _document_seal(text[: found.start()].encode()):
        raise DamagedFileError(
            f"{path} was altered: its SHA-256 isn't the one at its end; restore it or make it again"
        )
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} isn't JSON ({error}); make it again") from None
    del content["sha256"]
    return dict(content)


def add_row_checksum(row: dict[str, Any]) -> str:
    """Format a row as one line of JSON with its CRC-32 as the last field, without a line feed."""
    assert row
    assert "crc32" not in row
    body = json.dumps(row, allow_nan=False).removesuffix("}")
    return body + _row_seal(body.encode())


def verify_row(line: bytes) -> dict[str, Any]:
    """Parse a line written by `add_row_checksum`; a `ValueError` says that it isn't intact."""
    if not is_intact_row(line):
        raise ValueError("it was altered, or written by an older bertkit")
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"it isn't JSON ({error})") from None
    del row["crc32"]
    return dict(row)


def is_intact_row(line: bytes) -> bool:
    """Whether a line ends with its correct checksum, as `add_row_checksum` writes it."""
    body = line[: -len(_row_seal(b""))]
    return bool(body) and line == body + _row_seal(body).encode()


def _document_seal(body: bytes) -> str:
    return f',\n  "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'


def _row_seal(body: bytes) -> str:
    return f', "crc32": "{zlib.crc32(body):08x}"}}'


class ChecksummedModel(BaseModel):
    """Base of records that are files: immutable, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    description: ClassVar[str]
    limit_bytes: ClassVar[int] = 64 << 20  # a larger file isn't read
    # raised if the content isn't such a record
    error_kind: ClassVar[type[BertkitError]] = DamagedFileError

    def save(self, path: Path) -> FileRecord:
        """Write the record; errors as in `write_checksummed_json`."""
        return write_checksummed_json(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and validate a record."""
        content = read_checksummed_json(path, limit_bytes=cls.limit_bytes)
        return validate(cls, content, f"{path} isn't {cls.description}", cls.error_kind)
