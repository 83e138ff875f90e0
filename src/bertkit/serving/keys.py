"""Keys that a server asks for: those of clients, and the one of whoever runs it."""

import hmac
import os
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from bertkit.base.errors import SettingsError
from bertkit.base.files import read_text

KEYS_VARIABLE, ADMIN_VARIABLE = "BERTKIT_KEYS", "BERTKIT_ADMIN_KEY"
MAX_FILE_BYTES = 1 << 20
KEY_FORM = "letters, digits and ._~+/-, then any ="
KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow Bearer; Source: RFC 6750, 2.1


class Keys:
    """Keys of which a request must have one; none where nobody needs any."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [sha256(key.encode()).digest() for key in keys]

    @classmethod
    def read(cls, variable: str, path: Path | None = None) -> "Keys":
        """Read the keys of a file, or else those of a variable of the environment, one a line.

        Empty lines and those that begin with # are left out.
        """
        if path is None and variable not in os.environ:
            return cls()
        source = variable if path is None else str(path)
        text = os.environ[variable] if path is None else read_text(path, limit_bytes=MAX_FILE_BYTES)
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
        keys = [(number, line) for number, line in lines if line and not line.startswith("#")]
        for number, key in keys:
            if not KEY.fullmatch(key):
                raise SettingsError(f"line {number} of {source} isn't a key: {KEY_FORM}")
        if not keys:
            raise SettingsError(f"{source} has no key; write one a line, or leave it out")
        return cls(key for _, key in keys)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._digests)

    def find(self, header: str) -> str | None:
        """Return which key an Authorization header has, or None if it has none of them."""
        scheme, is_named, key = header.partition(" ")
        if not is_named:  # LlamaIndex's reranker sends the key alone
            scheme, key = "bearer", scheme
        given = sha256(key.strip().encode()).digest()
        matches = [hmac.compare_digest(given, one) for one in self._digests]
        is_right = scheme.lower() == "bearer" and any(matches)
        return f"key {matches.index(True) + 1}" if is_right else None
