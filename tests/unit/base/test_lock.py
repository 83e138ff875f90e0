"""One process at a time."""

from pathlib import Path

import pytest

from bertkit.base.errors import ResumeError, StorageError
from bertkit.base.lock import hold_folder


def test_a_held_folder_is_refused_and_let_go_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with (
        hold_folder(folder, "writing"),
        pytest.raises(ResumeError, match=r"another process is writing .*folder; wait for it"),
        hold_folder(folder, "writing"),
    ):
        pass
    with hold_folder(folder, "writing"):
        pass


def test_a_folder_that_cant_be_held_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(StorageError, match=r"\.lock can't be written"), hold_folder(tmp_path, "x"):
        pass
