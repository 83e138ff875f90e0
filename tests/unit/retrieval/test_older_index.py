"""An index folder of an earlier version gives way to a file; nothing else is removed."""

import pytest

from bertkit.base.errors import SettingsError
from bertkit.retrieval.older_index import remove_older_index

ARRAYS = ("vectors.npy", "text_ends.npy", "rows.npy", "cells/centers.npy")
FINISHED = ("index.json", "vectors.npy.json", "texts.bin", ".lock", *ARRAYS)
STARTED = (".lock", "vectors.npy.unfinished", "vectors.npy.unfinished.json", "texts.bin.partial")


def fill(place, names):
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")


@pytest.mark.parametrize("names", [FINISHED, STARTED])
def test_the_folder_of_an_earlier_version_is_removed_and_said(tmp_path, capsys, names):
    place = tmp_path / "notes.bertkit"
    fill(place, names)
    remove_older_index(place)
    assert list(tmp_path.iterdir()) == []
    assert "is an index of an older form" in capsys.readouterr().err


@pytest.mark.parametrize(
    "names",
    [
        (*FINISHED, "photo.jpg"),
        (*FINISHED, "cells/photo.jpg"),
        (*FINISHED, "texts/mine.txt"),
        (".lock", "index.html", "texts.csv", "ids.txt"),
        ("index.json", "vectors.npy"),
        (),
    ],
)
def test_a_folder_with_anything_else_is_left_as_it_is(tmp_path, names):
    place = tmp_path / "notes.bertkit"
    place.mkdir()
    fill(place, names)
    with pytest.raises(SettingsError, match="is a folder with other files"):
        remove_older_index(place)
    assert {path.relative_to(place).as_posix() for path in place.rglob("*.*")} == set(names)


def test_a_file_or_nothing_stays(tmp_path):
    remove_older_index(tmp_path / "missing.bertkit")
    (tmp_path / "notes.bertkit").write_text("x")
    remove_older_index(tmp_path / "notes.bertkit")
    assert (tmp_path / "notes.bertkit").read_text() == "x"
