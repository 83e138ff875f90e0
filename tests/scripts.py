"""Runs the tests of our scripts, which are written for Node's own test runner."""

import importlib.util
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

PAGE = ("bertkit.reports", "page")


def run_script_tests(tests: Path, folder: Path, *modules: tuple[str, str]) -> None:
    """Run all `*.test.js` of a folder; they import the page's modules as if these lay beside them.

    So they do those of further rooms and their folders.

    Skips where there is no Node: neither one on the path nor that of Playwright.
    """
    node = find_node()
    if node is None:
        pytest.skip("needs Node: install Playwright, which brings one, or the package nodejs")
    for package, name in (PAGE, *modules):
        for file in resources.files(package).joinpath(name).iterdir():
            if file.name.endswith(".js"):
                (folder / file.name).write_text(file.read_text())
    for test in tests.glob("*.test.js"):
        shutil.copy(test, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap"], cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# pass 0" not in run.stdout.splitlines()
    assert "# pass " in run.stdout


def find_node() -> str | None:
    """The Node on the path, or the one that Playwright drives browsers with."""
    playwright = importlib.util.find_spec("playwright")
    if playwright is not None and playwright.origin is not None:
        driver = Path(playwright.origin).parent / "driver" / "node"
        if driver.is_file():
            return str(driver)
    return shutil.which("node")
