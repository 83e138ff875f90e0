"""What is public of the room can be had from it, and importing it loads no torch."""

import subprocess
import sys

import pytest

from bertkit import interpret


@pytest.mark.parametrize("name", interpret.__all__)
def test_a_public_name_can_be_had(name):
    assert getattr(interpret, name).__name__ == name
    assert name in dir(interpret)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ablates'"):
        _ = interpret.ablates


def test_importing_the_room_loads_no_torch():
    script = "import sys, bertkit.interpret; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
