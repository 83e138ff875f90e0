"""What bench_index.py does with a store of texts and vectors."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from index_rows import Known, Query, Rows

TOP_K = 10


class Store(ABC):
    """A store in a folder, opened when it is made; what `add` and `delete` did is then on disk.

    Attributes:
        modules: that it imports, which isn't timed.
        is_kept: whether it is on disk; else it is filled again whenever it is opened.
        most_rows: that are timed when it is built, if each takes the same time.
    """

    modules: ClassVar[tuple[str, ...]]
    is_kept: ClassVar[bool] = True
    most_rows: ClassVar[int | None] = None

    @abstractmethod
    def __init__(self, folder: Path, known: Known) -> None: ...

    @abstractmethod
    def add(self, rows: Rows) -> None: ...

    @abstractmethod
    def delete(self, rows: Rows) -> None: ...

    @abstractmethod
    def search(self, query: Query, *, filtered: bool) -> list[str]: ...

    @abstractmethod
    def close(self) -> None: ...


@runtime_checkable
class FindsBoth(Protocol):
    """A store that finds by words and vectors, too."""

    def search_both(self, query: Query) -> list[str]: ...
