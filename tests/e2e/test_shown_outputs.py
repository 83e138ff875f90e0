"""What pages show below a command is what it prints today."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools import write_outputs
from tools.write_outputs import elide, find_differences, list_shown, run_page, write_page

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = sorted((ROOT / "docs/guide/explained").glob("*.md"))
PAGES = [
    page for page in (ROOT / "README.md", ROOT / "examples/README.md", *EXPLAINED) if page.exists()
]
TOLERANCE = 0.02
TIMEOUT_SECONDS = 900
# Of pages whose models are trained, by their paths; probabilities differ by processor.
TOLERANCES = {
    "README.md": 0.3,
    "docs/guide/explained/pretraining.md": 0.3,
    "docs/guide/explained/using.md": 0.1,
    "examples/README.md": 0.5,
}
PAGE = """# A page

```console
$ bertkit wrong
```

```console
$ echo "a  1.50" \\
    b
old

$ cat reviews.csv
one
…
last
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page, with a file for its commands."""
    examples = tmp_path / "examples"
    (examples / "data").mkdir(parents=True)
    (examples / "data/reviews.csv").write_text("1\n2\n3\n4\n")
    monkeypatch.setattr(write_outputs, "EXAMPLES", examples)
    path = tmp_path / "page.md"
    path.write_text(PAGE.replace("$ bertkit wrong", "$ pip install nothing-is-run"))
    return path


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_shows_what_is_printed(name):
    tolerance = TOLERANCES.get(name, TOLERANCE)
    # in a process of its own, where the checks of tensors' shapes don't slow training down
    tool = [sys.executable, str(ROOT / "tools/write_outputs.py"), "--json", str(ROOT / name)]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    commands = list(list_shown((ROOT / name).read_text(encoding="utf-8")))
    assert commands
    outputs = json.loads(done.stdout)
    for command, printed in zip(commands, outputs, strict=True):
        difference = find_differences(command.output, tuple(printed), tolerance)
        assert not difference, f"{name}:{command.line + 1}: {command.text}\n{difference}"


def test_tolerances_are_of_pages_that_exist():
    assert [name for name in TOLERANCES if not (ROOT / name).exists()] == []


def test_the_output_of_a_page_is_written_below_its_commands(page):
    write_page(page)
    assert page.read_text().splitlines()[7:] == [
        '$ echo "a  1.50" \\',
        "    b",
        "a  1.50 b",
        "$ cat reviews.csv",
        "1",
        "…",
        "4",
        "```",
    ]


def test_a_command_that_fails_is_an_error(page):
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(RuntimeError, match="'false' ended with 1"):
        list(run_page(page))


def test_commands_of_bertkit_run_in_this_process(page):
    page.write_text("```console\n$ bertkit --version  # today's\n```\n")
    ((command, printed),) = run_page(page)
    assert command.output == ()
    assert len(printed) == 1


@pytest.mark.parametrize(
    ("shown", "printed", "is_found"),
    [
        ("a 1.00", "a   1.01", False),
        ("a 1.00", "a 1.10", True),
        ("a 1.00", "b 1.00", True),
        ("a", "a\nb", True),
        ("1,000 of 2", "1,001 of 2", False),
        ("−0.5", "-0.5", False),
        ("44.3 % the", "44.9 % the", False),
        ("44.3 % the", "46.3 % the", True),
        ("took 1.3 s", "took 200 s", False),
        ("3 tokens", "4 tokens", True),
        ("a\n…\nd", "a\nb\nc\nd", False),
        ("a\n…\nd", "a\nb\nc", True),
        ("a\n…\nd", "a", True),
        ("…", "", False),
    ],
)
def test_lines_are_compared_with_a_tolerance_for_numbers(shown, printed, is_found):
    lines = tuple(shown.splitlines()), tuple(printed.splitlines())
    assert bool(find_differences(*lines, TOLERANCE)) == is_found


def test_what_a_page_leaves_out_is_left_out_again():
    assert elide(("a", "…"), ("b", "c", "d")) == ("b", "…")


def test_only_console_blocks_are_read():
    assert list(list_shown("```\n$ echo\n```\n\n$ echo")) == []
