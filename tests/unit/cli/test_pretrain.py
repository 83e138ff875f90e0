"""`bertkit pretrain` before the recipe has the word."""

import signal
import sys

import pytest

from bertkit.cli.main import main


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
