"""One process at a time."""

from pathlib import Path

import pytest

from bertkit.base.errors import ResumeError, StorageError
from bertkit.base.output import open_output


def test_a_held_folder_is_refused_and_let_go_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with (
        open_output(folder, "writing", is_workplace=True),
        pytest.raises(ResumeError, match=r"another process is writing .*folder; wait for it"),
        open_output(folder, "writing", is_workplace=True),
    ):
        pass
    with open_output(folder, "writing", is_workplace=True):
        pass


def test_a_folder_that_cant_be_held_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with (
        pytest.raises(StorageError, match=r"\.lock can't be written"),
        open_output(tmp_path, "x", is_workplace=True),
    ):
        pass
