"""State of the pickle interpreter: the position in the bytes, the stack and the memo."""

import struct
from typing import Any

from bertkit.base.errors import DamagedFileError, UnsafeFileError

# 400 tensors memoize 4,000 values and need a stack of 2,000 with three marks.
MAX_MEMORIZED = 50_000
MAX_STACK = 10_000
MAX_MARKS = 100
MAX_NAME_BYTES = 256  # of a module, or of a name in it


class PickleReader:
    """Reads bytes sequentially and raises an error past the end.

    Attributes:
        position: of the next byte.
    """

    def __init__(self, data: bytes) -> None:
        self.position = 0
        self._data = data

    def take(self, num_bytes: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= num_bytes <= self.num_left():
            raise DamagedFileError(
                f"has a pickle that wants {num_bytes:,} bytes at byte {self.position:,}, where"
                f" {self.num_left():,} are left; it was cut short or altered: fetch it again"
            )
        start, self.position = self.position, self.position + num_bytes
        return self._data[start : self.position]

    def num_left(self) -> int:
        """Return the number of remaining bytes."""
        return len(self._data) - self.position

    def unpack(self, form: struct.Struct) -> Any:
        """Return the next number."""
        return form.unpack(self.take(form.size))[0]

    def take_text(self, num_bytes: int, encoding: str) -> str:
        """Return the next bytes as a string."""
        try:
            return self.take(num_bytes).decode(encoding)
        except UnicodeDecodeError:
            raise DamagedFileError(
                f"has a string that isn't {encoding} before byte {self.position:,}"
            ) from None

    def take_line(self) -> str:
        """Return the bytes up to the next newline as a string."""
        end = self._data.find(b"\n", self.position, self.position + MAX_NAME_BYTES)
        if end < 0:
            raise DamagedFileError(f"has no name at byte {self.position:,}")
        line = self.take_text(end - self.position, "utf-8")
        self.position = end + 1
        return line


class PickleStack:
    """The value stack, its marks, and the memo."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memorized: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        """Push a value."""
        if len(self._values) >= MAX_STACK:
            raise UnsafeFileError(
                f"has a pickle with over {MAX_STACK:,} values under way; no weights need as many"
            )
        self._values.append(value)

    def pop(self) -> Any:
        """Pop the top value; values below the last mark can't be popped."""
        lowest = self._marks[-1] if self._marks else 0
        if len(self._values) <= lowest:
            raise DamagedFileError("has a pickle that takes more values than it gave")
        return self._values.pop()

    def mark(self) -> None:
        """Mark the start of a list of values."""
        if len(self._marks) >= MAX_MARKS:
            raise UnsafeFileError(
                f"has a pickle nested over {MAX_MARKS} deep; no weights need as much"
            )
        self._marks.append(len(self._values))

    def pop_marked(self) -> list[Any]:
        """Pop all values above the last mark, and the mark."""
        if not self._marks:
            raise DamagedFileError("has a pickle that ends a list which it never began")
        start = self._marks.pop()
        values = self._values[start:]
        del self._values[start:]
        return values

    def target(self, kind: type, doing: str) -> Any:
        """Return the top value for modification, without popping it, after checking its type."""
        value = self.pop()
        if type(value) is not kind:
            raise UnsafeFileError(
                f"asks to {doing} a {type(value).__name__}; expected a {kind.__name__}"
            )
        self.push(value)
        return value

    def memorize(self, index: int | None = None) -> None:
        """Memoize the top value under an index, by default the next one."""
        if len(self._memorized) >= MAX_MEMORIZED:
            raise UnsafeFileError(
                f"has a pickle that keeps over {MAX_MEMORIZED:,} values; no weights need as many"
            )
        value = self.pop()
        self.push(value)
        self._memorized[len(self._memorized) if index is None else index] = value

    def recall(self, index: int) -> None:
        """Push a memoized value."""
        if index not in self._memorized:
            raise DamagedFileError(f"has a pickle that recalls value {index:,} before it is there")
        self.push(self._memorized[index])
