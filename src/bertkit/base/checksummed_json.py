"""JSON that tells when it was altered: its last field is a checksum over the bytes before it.

Both forms stay JSON for people and other tools. A document ends with a SHA-256, a row of a log with
a CRC-32. The checksum covers all bytes before it and what follows is compared as it stands, so a
flipped bit anywhere is found, in a key or in white space too.
"""

import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError
from bertkit.base.files import read_text, write_file

DOCUMENT_SEAL = re.compile(r',\n  "sha256": "[0-9a-f]{64}"\n}\n')


def write_checksummed_json(path: Path, content: dict[str, Any]) -> FileRecord:
    """Write a JSON object as people read it, and its SHA-256 as the last field.

    Raises:
        StorageError: writing failed; the old file, if any, is untouched.
    """
    assert content
    assert "sha256" not in content
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # The name of a file may hold bytes that aren't UTF-8; as \udcXX they stay valid JSON.
    body = text.removesuffix("\n}").encode(errors="backslashreplace")
    return write_file(path, body + _document_seal(body).encode())


def read_checksummed_json(path: Path, *, limit_bytes: int = 64 << 20) -> dict[str, Any]:
    """Read what `write_checksummed_json` wrote, without the seal.

    Raises:
        MissingFileError: there is no such file.
        DamagedFileError: it isn't as it was written.
        StorageError: it can't be read.
    """
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
    """One line of a log, with its CRC-32 as the last field and without the line's end."""
    assert row
    assert "crc32" not in row
    body = json.dumps(row, allow_nan=False).removesuffix("}")
    return body + _row_seal(body.encode())


def verify_row(line: bytes) -> dict[str, Any]:
    """What `add_row_checksum` was given.

    Raises:
        ValueError: the line isn't as it was written, or isn't JSON.
    """
    if not is_intact_row(line):
        raise ValueError("it was altered, or written by an older bertkit")
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"it isn't JSON ({error})") from None
    del row["crc32"]
    return dict(row)


def is_intact_row(line: bytes) -> bool:
    """Whether a line is as `add_row_checksum` made it."""
    body = line[: -len(_row_seal(b""))]
    return bool(body) and line == body + _row_seal(body).encode()


def _document_seal(body: bytes) -> str:
    return f',\n  "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'


def _row_seal(body: bytes) -> str:
    return f', "crc32": "{zlib.crc32(body):08x}"}}'
