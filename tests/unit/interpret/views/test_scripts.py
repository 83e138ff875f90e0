"""The views' own scripts, in the parts that need no browser."""

from pathlib import Path

from tests.scripts import run_script_tests


def test_the_scripts_of_the_views(tmp_path):
    run_script_tests(Path(__file__).parent, tmp_path)
