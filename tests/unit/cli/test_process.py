"""The first and the last moments of the process, when no command is there to hear Ctrl-C."""

import signal
import subprocess
import sys

import pytest

from bertkit import __main__ as process
from bertkit.base.signals import STOP_SIGNALS
from bertkit.cli import main as module


@pytest.fixture(autouse=True)
def _handlers_are_put_back(monkeypatch):
    monkeypatch.setattr(process, "leave_out_converter", lambda: None)  # of the tests' process
    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("code", [0, 2, 75])
def test_a_signal_behind_the_work_changes_nothing(monkeypatch, code):
    monkeypatch.setattr(module, "main", lambda: code)
    with pytest.raises(SystemExit) as ended:
        process.run()
    assert ended.value.code == code
    assert {signal.getsignal(each) for each in STOP_SIGNALS} == {signal.SIG_IGN}


def test_ctrl_c_while_the_command_line_loads_is_a_line(monkeypatch, capsys):
    monkeypatch.setattr(module, "main", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as ended:
        process.run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "bertkit: interrupted\n"


def test_ctrl_c_between_the_work_and_its_end_is_not_heard(monkeypatch, capsys):
    ignore, calls = process.ignore_stop_signals, []

    def interrupted():
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        ignore()

    monkeypatch.setattr(module, "main", lambda: 75)
    monkeypatch.setattr(process, "ignore_stop_signals", interrupted)
    with pytest.raises(SystemExit) as ended:
        process.run()
    assert ended.value.code == 75
    assert capsys.readouterr().err == ""


IMPORT = """
import sys
from bertkit.__main__ import leave_out_converter
leave_out_converter()
import openvino.opset13
print(*(name for name in sys.modules if "telemetry" in name or "ovc." in name))
"""


def test_the_runtime_comes_without_its_converter():
    child = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, check=True, text=True
    )
    assert not child.stdout.strip()
