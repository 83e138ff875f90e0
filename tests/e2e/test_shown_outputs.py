"""What pages show below a command is what it prints today."""

import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.exhaustive import mark_all_but
from tools import write_outputs
from tools.write_outputs import (
    EXACT,
    ShownCommand,
    Tolerance,
    elide,
    find_differences,
    list_shown,
    run_page,
    write_page,
)

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = sorted((ROOT / "docs/guide/explained").glob("*.md"))
RUN = [
    str(page.relative_to(ROOT))
    for page in (
        ROOT / "README.md",
        ROOT / "examples/README.md",
        ROOT / "docs/guide/explain.md",
        ROOT / "docs/guide/predict.md",
        *EXPLAINED,
    )
    if page.exists()
]
GUIDES = [
    name
    for page in sorted((ROOT / "docs/guide").glob("*.md"))
    if (name := str(page.relative_to(ROOT))) not in RUN
]
OF_THE_MACHINE = {"bertkit devices"}
TIMEOUT_SECONDS = 900
# What the lines of trained models may differ by, by a pattern that finds them. Training multiplies
# differences of rounding, and the precision that `auto` takes differs by processor. A figure with
# an interval is compared with that instead.
UNSURE = Tolerance(
    40, 0, "a model of a minute or less: its answer is compared, how sure it is only roughly"
)
FEW_TOKENS = Tolerance(10, 0.3, "some hundred held-out tokens, after a minute of training")
FEW_BLANKS = Tolerance(20, 0, "17 blanks, one of which is six points")
FEW_ROWS = Tolerance(0, 0, "30 rows, as many as the interval of the accuracy allows", counts=4)
FEW_NAMES = Tolerance(20, 0, "35 names of three kinds: one is three points, more of its kind")
FEW_TEXTS = Tolerance(0, 0.1, "BLEU of some dozen short pairs")
TRAINED = {
    r"^(positive|negative) ": UNSURE,  # of `bertkit classify` and examples/sentiment.py
    r"percentage points for |random words? left out, ": UNSURE,  # of explanations
    r" % (cellar|mouse|squirrel|tree|was|in|\.)$": UNSURE,  # of models that read the stories
    r"[A-Z]{4,}.* \([\d.]+ %\)$": UNSURE,  # of examples/own_bert.py
    r"^Prague  |\) \[documents/": UNSURE,  # of readers
    r"Held-out: loss ": FEW_TOKENS,
    r"% of \d+ held-out blanks": FEW_BLANKS,
    r"^ +(positive|negative) +\d+ +\d+$": FEW_ROWS,
    r"solved; \d+ held-out examples: f1 ": FEW_NAMES,
    r"^BLEU ": FEW_TEXTS,
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


def find_tolerance(line: str) -> Tolerance:
    """The tolerance of a line that a page shows."""
    return next((one for pattern, one in TRAINED.items() if re.search(pattern, line)), EXACT)


def name_command(command: ShownCommand) -> str:
    """The words of a command, the same however it is laid out."""
    return shlex.join(shlex.split(command.text.replace("\\\n", " "), comments=True))


def list_outputs(pages: list[str]) -> Iterator[tuple[str, str, ShownCommand]]:
    """Yield page and name of each command below which a page shows an output."""
    for page in pages:
        for command in list_shown((ROOT / page).read_text(encoding="utf-8")):
            if any(line.strip("… ") for line in command.output):
                yield page, name_command(command), command


@pytest.mark.parametrize("name", mark_all_but(["README.md"], RUN))
def test_a_page_shows_what_is_printed(name, request):
    # in a process of its own, where the checks of tensors' shapes don't slow training down
    processor = ("--processor", request.config.getoption("--processor"))
    tool = [sys.executable, str(ROOT / "tools/write_outputs.py"), "--json", *processor]
    done = subprocess.run(
        [*tool, str(ROOT / name)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    commands = list(list_shown((ROOT / name).read_text(encoding="utf-8")))
    assert commands
    outputs = json.loads(done.stdout)
    for command, printed in zip(commands, outputs, strict=True):
        difference = find_differences(command.output, tuple(printed), find_tolerance)
        assert not difference, f"{name}:{command.line + 1}: {command.text}\n{difference}"


def test_no_two_pages_show_two_outputs_of_one_command():
    outputs = defaultdict(list)
    for page, name, command in list_outputs([*RUN, *GUIDES]):
        outputs[name].append((page, command.output))
    for name, ((first, output), *others) in outputs.items():
        for page, other in others:
            pairs = (output, elide(output, other)), (other, elide(other, output))
            assert any(one == again for one, again in pairs), f"{name}: {first}, {page}"


def test_a_guide_shows_what_is_printed(request):
    """What needs a trained model is shown as on a page that is run; the rest runs by itself."""
    held = {name for _, name, _ in list_outputs(RUN)} | OF_THE_MACHINE
    for page in GUIDES:
        names = {name for _, name, _ in list_outputs([page])} - held
        found = run_page(ROOT / page, lambda command, names=names: name_command(command) in names)
        for command, printed in found:
            difference = find_differences(command.output, printed, find_tolerance)
            assert not difference, f"{page}:{command.line + 1}: {command.text}\n{difference}"


def test_each_tolerance_is_of_a_line_that_is_shown():
    lines = [line for _, _, command in list_outputs(RUN) for line in command.output]
    assert [one for one in TRAINED if not any(re.search(one, line) for line in lines)] == []


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
        ("1,000 of 2", "1,001 of 2", True),
        ("−0.5", "-0.5", False),
        ("44.3 % the", "44.9 % the", False),
        ("44.3 % the", "46.3 % the", True),
        ("90.0 % (79.9–100.0 %)", "86.7 % (73.3–96.7 %)", False),
        ("90.0 % (79.9–100.0 %)", "76.7 % (60.0–90.0 %)", True),
        ("90.0 % (79.9–100.0) of 30 are right", "86.7 % (73.3–96.7) of 31 are right", True),
        ("94.1 % (73.0–99.0 %, 17 blanks)", "88.2 % (65.7–96.7 %, 17 blanks)", False),
        ("94.1 % (73.0–99.0 %, 17 blanks)", "88.2 % (65.7–96.7 %, 18 blanks)", True),
        ("took 1.3 s", "took 200 s", False),
        ("3 tokens", "4 tokens", True),
        ("a\n…\nd", "a\nb\nc\nd", False),
        ("a\n…\nd", "a\nb\nc", True),
        ("a\n…\nd", "a", True),
        ("…", "", False),
    ],
)
def test_lines_are_compared_with_their_intervals_or_a_tolerance(shown, printed, is_found):
    lines = tuple(shown.splitlines()), tuple(printed.splitlines())
    assert bool(find_differences(*lines)) == is_found


@pytest.mark.parametrize(
    ("printed", "is_found"),
    [
        ("2 of 9 %: 45.0 %, 1.30", False),
        ("2 of 9 %: 61.0 %, 1.30", True),
        ("2 of 9 %: 45.0 %, 1.70", True),
        ("6 of 9 %: 45.0 %, 1.30", True),
    ],
)
def test_a_tolerance_has_points_a_share_and_a_count(printed, is_found):
    tolerance = Tolerance(10, 0.2, "a test", counts=2)
    found = find_differences(("3 of 9 %: 50.0 %, 1.20",), (printed,), lambda line: tolerance)
    assert bool(found) == is_found
