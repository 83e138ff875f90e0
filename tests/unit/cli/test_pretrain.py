"""`bertkit pretrain` before the recipe has the word."""

import signal
import sys

import pytest

from bertkit.cli.main import main
from bertkit.cli.pretrain import list_patterns
from bertkit.data.input_files import find_pattern


def test_globs_are_suggested_only_of_the_files_that_were_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"{one}.txt" for one in "abcd"]
    for name in (*names, "e.md", "f.md"):
        (tmp_path / name).touch()
    assert list_patterns([*names, "e.md", "f.md"]) == ["*.md", "*.txt"]
    assert list_patterns(names[1:]) == []
    (tmp_path / "a.d").mkdir()
    url = "https://example.org/a.txt?version=1.5"
    assert [find_pattern(name) for name in ("a.d", "..", url)] == ["a.d", "..", url]
    assert list_patterns(["a.d", *names]) == ["*.txt", "a.d"]


class SignalOnImport:
    """Sends a signal when one module is looked for."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_torch_is_loading_is_told_as_any_other(
    tmp_path, capsys, monkeypatch, number
):
    name = "bertkit.recipes.pretrain.run"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [SignalOnImport(name, number), *sys.meta_path])
    assert main(["pretrain", "--data", str(tmp_path), "--output", str(tmp_path / "run")]) == 75
    assert capsys.readouterr().err == (
        "bertkit: stopped while loading; run the same command again\n"
    )
    assert not (tmp_path / "run").exists()
