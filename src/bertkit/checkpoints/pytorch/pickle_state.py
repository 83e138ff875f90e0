"""Where a pickle machine stands: in the bytes, and in the values that it has made of them."""

import struct
from typing import Any

from bertkit.base.errors import DamagedFileError, UnsafeFileError

# 400 tensors keep 4,000 values, and have 2,000 and three marks under way.
MAX_MEMORIZED = 50_000
MAX_STACK = 10_000
MAX_MARKS = 100
MAX_NAME_BYTES = 256  # of a module, or of what is in it


class PickleReader:
    """Takes bytes one behind another, and only where there are any.

    Attributes:
        position: of the first byte that wasn't taken.
    """

    def __init__(self, data: bytes) -> None:
        self.position = 0
        self._data = data

    def take(self, num_bytes: int) -> bytes:
        """The next bytes."""
        if not 0 <= num_bytes <= self.num_left():
            raise DamagedFileError(
                f"has a pickle that wants {num_bytes:,} bytes at byte {self.position:,}, where"
                f" {self.num_left():,} are left; it was cut short or altered: fetch it again"
            )
        start, self.position = self.position, self.position + num_bytes
        return self._data[start : self.position]

    def num_left(self) -> int:
        """How many bytes are there still."""
        return len(self._data) - self.position

    def unpack(self, form: struct.Struct) -> Any:
        """The next number."""
        return form.unpack(self.take(form.size))[0]

    def take_text(self, num_bytes: int, encoding: str) -> str:
        """The next bytes as a string."""
        try:
            return self.take(num_bytes).decode(encoding)
        except UnicodeDecodeError:
            raise DamagedFileError(
                f"has a string that isn't {encoding} before byte {self.position:,}"
            ) from None

    def take_line(self) -> str:
        """The bytes until the next end of a line, as a string."""
        end = self._data.find(b"\n", self.position, self.position + MAX_NAME_BYTES)
        if end < 0:
            raise DamagedFileError(f"has no name at byte {self.position:,}")
        line = self.take_text(end - self.position, "utf-8")
        self.position = end + 1
        return line


class PickleStack:
    """The values under way, the marks among them, and those that are memorized."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memorized: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        """Put a value on top."""
        if len(self._values) >= MAX_STACK:
            raise UnsafeFileError(
                f"has a pickle with over {MAX_STACK:,} values under way; no weights need as many"
            )
        self._values.append(value)

    def pop(self) -> Any:
        """Take the value from the top."""
        lowest = self._marks[-1] if self._marks else 0
        if len(self._values) <= lowest:
            raise DamagedFileError("has a pickle that takes more values than it gave")
        return self._values.pop()

    def mark(self) -> None:
        """Begin a list of values."""
        if len(self._marks) >= MAX_MARKS:
            raise UnsafeFileError(
                f"has a pickle nested over {MAX_MARKS} deep; no weights need as much"
            )
        self._marks.append(len(self._values))

    def pop_marked(self) -> list[Any]:
        """End a list of values, and take it."""
        if not self._marks:
            raise DamagedFileError("has a pickle that ends a list which it never began")
        start = self._marks.pop()
        values = self._values[start:]
        del self._values[start:]
        return values

    def target(self, kind: type, doing: str) -> Any:
        """The value on top, which is to be changed and stays."""
        value = self.pop()
        if type(value) is not kind:
            raise UnsafeFileError(
                f"asks to {doing} a {type(value).__name__}; expected a {kind.__name__}"
            )
        self.push(value)
        return value

    def memorize(self, index: int | None = None) -> None:
        """Keep the value on top under a number, the next one unless told."""
        if len(self._memorized) >= MAX_MEMORIZED:
            raise UnsafeFileError(
                f"has a pickle that keeps over {MAX_MEMORIZED:,} values; no weights need as many"
            )
        value = self.pop()
        self.push(value)
        self._memorized[len(self._memorized) if index is None else index] = value

    def recall(self, index: int) -> None:
        """Put a memorized value on top."""
        if index not in self._memorized:
            raise DamagedFileError(f"has a pickle that recalls value {index:,} before it is there")
        self.push(self._memorized[index])
