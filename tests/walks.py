"""How far something walks through bertkit: the files whose functions run for it."""

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import bertkit

SOURCES = Path(bertkit.__file__).parent


class Walk:
    """Notes the files of bertkit, relative to its folder, while it is watched."""

    def __init__(self, *, is_watched: bool = True) -> None:
        self.files: set[str] = set()
        self.is_watched = is_watched

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as a function of `sys.setprofile`."""
        path = Path(frame.f_code.co_filename)
        if self.is_watched and event == "call" and path.is_relative_to(SOURCES):
            self.files.add(path.relative_to(SOURCES).as_posix())


@contextmanager
def follow(walk: Walk) -> Iterator[Walk]:
    """Follow the calls of this thread, and of threads that begin in the block."""
    before = sys.getprofile()
    gc.collect()  # what tests before left would end in files of its own
    gc.disable()
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        gc.enable()
