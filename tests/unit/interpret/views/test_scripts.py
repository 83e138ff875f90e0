"""The views' own scripts, in the parts that need no browser."""

from pathlib import Path

import pytest
from tests.scripts import run_script_tests


@pytest.mark.parametrize("view", [".", "geometry", "neurons", "tokens"])
def test_the_scripts_of_the_views(view, tmp_path):
    run_script_tests(Path(__file__).parent / view, tmp_path, ("bertkit.interpret", "views"))
