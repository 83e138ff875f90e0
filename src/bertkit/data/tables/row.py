"""One row of a table of texts, and the decoding that all formats share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from bertkit.base.errors import InputError
from bertkit.data.readers.lines import SURROGATE

MAX_ROW_BYTES = 16 << 20
DEFAULT_FIELD = "text"
MAX_SHOWN_NAMES, MAX_SHOWN_CHARS = 10, 40


class TextRow(NamedTuple):
    """A text, and its size in the file.

    Attributes:
        text: may be empty; NULs are kept.
        num_bytes: size on disk, for progress; approximate if the file is compressed or Parquet.
    """

    text: str
    num_bytes: int


@dataclass
class RowDecoder:
    """Decodes the bytes of rows, and tracks the current row.

    Attributes:
        name: of the file, for messages.
        field: column that has the text; None: the only column, else `text`.
        num_rows: number of completed rows.
        num_undecodable: number of rows with invalid Unicode.
    """

    name: str
    field: str | None = None
    num_rows: int = 0
    num_undecodable: int = 0
    _last_undecodable: int = -1

    @property
    def place(self) -> str:
        """File and number of the current row, for messages."""
        return f"{self.name}, row {self.num_rows + 1:,}"

    def decode(self, content: bytes) -> str:
        """Decode UTF-8; invalid bytes become U+FFFD, and the row is counted."""
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            self._count_undecodable()
            return content.decode("utf-8", errors="replace")

    def mend(self, text: str) -> str:
        """Replace lone surrogates, which invalid escapes can produce, and count the row."""
        if SURROGATE.search(text) is None:
            return text
        self._count_undecodable()
        return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)

    def choose_field(self, names: Sequence[str]) -> str:
        """Return the name of the column that has the text."""
        wanted = names[0] if self.field is None and len(names) == 1 else self.field
        if wanted is None and DEFAULT_FIELD not in names:
            raise InputError(
                f"{self.name} has the columns {show_names(names)}, and none is named"
                f" {DEFAULT_FIELD}; say with --field which one has the text"
            )
        wanted = DEFAULT_FIELD if wanted is None else wanted
        if wanted not in names:
            raise InputError(
                f"{self.name} has no column {wanted}; name with --field one of {show_names(names)}"
            )
        if list(names).count(wanted) > 1:
            raise InputError(f"{self.name} has the column {wanted} twice; rename one of them")
        return wanted

    def refuse_rest(self, _: str, cause: str) -> NoReturn:
        """Raise an error for a file that can't be decompressed any further."""
        raise InputError(
            f"{self.name} is damaged or cut short after row {self.num_rows:,} ({cause});"
            " make or fetch it again"
        )

    def check_size(self, num_bytes: int) -> None:
        """Raise an error if a row is too long."""
        if num_bytes > MAX_ROW_BYTES:
            raise InputError(
                f"{self.place} has more than {MAX_ROW_BYTES >> 20} MiB; a text may have as many"
            )

    def _count_undecodable(self) -> None:
        if self._last_undecodable != self.num_rows:
            self._last_undecodable = self.num_rows
            self.num_undecodable += 1


def show_names(names: Collection[str]) -> str:
    """Return the first column names as one string for a message."""
    shown = [name[:MAX_SHOWN_CHARS] for name in list(names)[:MAX_SHOWN_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
