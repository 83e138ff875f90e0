"""Counts how often a file is opened, and how many of its bytes are read."""

import io
from collections import Counter
from pathlib import Path

import pytest


class Reading:
    """Opened files and read bytes, by path."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.opens, self.num_bytes = Counter[Path](), Counter[Path]()
        reading, open_path = self, Path.open

        class Counted(io.FileIO):
            def readinto(self, buffer):
                count = super().readinto(buffer)
                reading.num_bytes[Path(self.name)] += count
                return count

        def open_counted(path, mode="r", buffering=-1, *others, **named):
            if mode != "rb":
                return open_path(path, mode, buffering, *others, **named)
            self.opens[path] += 1
            file = Counted(path)
            return file if buffering == 0 else io.BufferedReader(file)

        patch.setattr(Path, "open", open_counted)

    def check_once(self, *paths: Path) -> None:
        """Each of these files was opened once, and read once from its beginning to its end."""
        for path in paths:
            assert (self.opens[path], self.num_bytes[path]) == (1, path.stat().st_size)
