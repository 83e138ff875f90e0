"""One foreign folder that is broken or hostile, and what bertkit must say to it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.base.errors import BertkitError

OUTSIDE = "outside"  # a folder beside that of the case, with whole and harmless files


@dataclass(frozen=True)
class Case:
    """A folder to be written and opened.

    Attributes:
        defect: the class of defect, in a few words; at most 20 cases share it.
        number: tells cases of one defect apart.
        files: content by path inside the folder.
        error: exactly this class is raised; None where opening is the documented acceptance.
        match: a regular expression that the message holds; empty for an acceptance.
        links: symbolic links by path inside the folder, and where they lead; `{outside}` in it
            stands for a folder beside, with whole and harmless files.
        pipes: named pipes by path inside the folder.
        folders: empty folders by path inside the folder.
        opened: the path inside the folder that is opened as a model.
    """

    defect: str
    number: int
    files: dict[str, bytes]
    error: type[BertkitError] | None
    match: str
    links: dict[str, str] = field(default_factory=dict)
    pipes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    opened: str = "."

    def __str__(self) -> str:
        return f"{self.defect} {self.number}"

    @property
    def size_bytes(self) -> int:
        """Of all files together: what the folder declares."""
        return sum(len(content) for content in self.files.values())

    def write(self, folder: Path) -> Path:
        """Make the folder; the path to be opened."""
        for name in (*self.files, *self.links, *self.pipes):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for name in self.folders:
            (folder / name).mkdir(parents=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        for name, target in self.links.items():
            outside = os.fspath(folder.parent / OUTSIDE)
            (folder / name).symlink_to(target.format(outside=outside))
        for name in self.pipes:
            os.mkfifo(folder / name)
        return folder / self.opened


# What the folders of a defect are made of, by its name, its error, and what the message holds.
Defects = Mapping[tuple[str, type[BertkitError] | None, str], Iterable[Any]]


def make_cases(defects: Defects, make_folder: Callable[[Any], dict[str, bytes]]) -> Iterator[Case]:
    """A case of each folder of each defect."""
    for (defect, error, match), contents in defects.items():
        for index, content in enumerate(contents):
            yield Case(defect, index, make_folder(content), error, match)
