"""The next command to try is chosen from files only where that can't hang or fail."""

import os

import pytest

from bertkit.base.errors import InputError
from bertkit.cli.next_step import read_arguments


def test_a_row_of_a_file_becomes_arguments(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("Ein Satz.\n")
    rows = [[("", "Ein Satz."), ("--pair", "Noch einer.")]]
    assert read_arguments([path], lambda: rows) == ["Ein Satz.", "--pair", "Noch einer."]


@pytest.mark.parametrize("name", ["pipe", "gone.txt", "-", "https://example.org/a.txt"])
def test_what_may_not_be_there_again_is_not_opened_again(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "texts.txt").touch()
    assert read_arguments(["texts.txt", name], pytest.fail) == []


@pytest.mark.parametrize("error", [InputError("no rows"), FileNotFoundError("gone")])
def test_a_file_that_changed_meanwhile_fails_nothing(tmp_path, error):
    def read_rows():
        raise error
        yield

    path = tmp_path / "texts.txt"
    path.touch()
    assert read_arguments([path], read_rows) == []
