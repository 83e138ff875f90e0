"""What benchmarks measure sides with: memory read from the system, equal losses, their imports."""

import importlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_a_row_that_the_system_lacks_is_named():
    read_status = importlib.import_module("peaks").read_status
    assert 0 < read_status("VmRSS") <= read_status("VmHWM")
    with pytest.raises(SystemExit, match="/proc/self/status has no row VmOther, from which"):
        read_status("VmOther")


def test_a_process_that_has_ended_holds_nothing():
    peak_of = importlib.import_module("peaks").peak_of
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert peak_of(process.pid) > 0
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert peak_of(process.pid) == 0  # its status is there and has no such row
    assert peak_of(process.pid) == 0


@pytest.mark.parametrize(
    ("precision", "equal", "other"), [("fp32", 7.0005, 7.001), ("bf16", 7.1, 7.2)]
)
def test_losses_are_equal_within_the_tolerance_of_a_precision(precision, equal, other):
    place = importlib.import_module("devices").Place.of("cpu", precision)
    place.check_losses("tiny", {"bertkit": 7.0, "transformers": equal})
    for loss in (other, math.nan):
        with pytest.raises(SystemExit, match="tiny: the losses of the same batch differ by more"):
            place.check_losses("tiny", {"bertkit": 7.0, "transformers": loss})


@pytest.mark.parametrize(
    ("side", "module"),
    [
        ("bertkit", "bertkit.models.bert.heads"),
        ("transformers", "transformers.models.bert.modeling_bert"),
    ],
)
def test_a_side_has_its_library_before_its_model(side, module):
    program = (
        "import sys; from pretraining_sides import import_side;"
        f" import_side({side!r}); sys.exit({module!r} not in sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=BENCHMARKS, check=True)
