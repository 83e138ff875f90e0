"""Run the commands that pages show, and write their output below them.

    python tools/write_outputs.py README.md docs/guide/explained/attention.md

The lines of a ```console block that begin with `$` are run in order, a page in a folder of its own
that holds copies of the files of examples/data (examples/README.md: of all of examples/). What a
command writes to standard output stands below it. A line `…` stands for any lines; where a page has
one, as many lines before and after it are shown as before. Tests compare pages with what is printed
today (`find_differences`), so that no output can age.
"""

import argparse
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from bertkit.cli.main import main as run_bertkit
from bertkit.training import processor

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROMPT, OMITTED = "$ ", "…"
INSTALLERS = ("pip ", "make ", "git ", "cd ")  # what a reader does once, and no test
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
DURATION = re.compile(rf"{NUMBER.pattern}(?=[  ]?(?:s|ms|seconds?|minutes?|tokens/s|MB/s)\b)")
# a figure with its interval: 90.0 % (79.9–100.0 %) or 94.1 % (73.0–99.0 %, 17 blanks)
VALUE, LOW, HIGH = (rf"(?P<{name}>{NUMBER.pattern})(?: %)?" for name in ("value", "low", "high"))
ESTIMATE = re.compile(rf"{VALUE} \({LOW}–{HIGH}(?=[,)])")
ROUNDING = 0.02  # of a number with decimals, as a share of it, or of 1 below 1
TIMEOUT_SECONDS = 300
PROCESSORS = ROOT / "tests" / "processors"


@dataclass(frozen=True)
class ShownCommand:
    """A command of a page, and what the page shows below it.

    Attributes:
        line: number of the command's first line, from 0.
        text: the command as the shell gets it.
        start: number of the first line of output.
        output: the lines of output on the page.
    """

    line: int
    text: str
    start: int
    output: tuple[str, ...]


def list_shown(page: str) -> Iterator[ShownCommand]:
    """The commands of a page's console blocks that are run."""
    lines = page.splitlines()
    is_console, command, is_open = False, None, False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            if command is not None:
                yield command
            is_console, command = line == "```console", None
        elif not is_console:
            continue
        elif line.startswith(PROMPT):
            if command is not None:
                yield command
            text = line.removeprefix(PROMPT)
            command, is_open = ShownCommand(number, text, number + 1, ()), text.endswith("\\")
            if text.startswith(INSTALLERS):
                command = None
        elif command is not None and is_open:
            command = replace(command, text=f"{command.text}\n{line}", start=number + 1)
            is_open = line.endswith("\\")
        elif command is not None:
            command = replace(command, output=(*command.output, line))


def lay_out(page: Path, folder: Path) -> Path:
    """Copy what the page's commands read into a folder of that name, by which `prepare` draws."""
    source = EXAMPLES if page.parent == EXAMPLES else EXAMPLES / "data"
    ignored = shutil.ignore_patterns("demo", "README.md", "__pycache__", "test_*")
    shutil.copytree(source, folder / source.name, ignore=ignored)
    return folder / source.name


def run_command(text: str) -> str:
    """Run a command in the working folder and return its standard output.

    A line of bertkit's own runs in this process, which has loaded torch and keeps models.
    """
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    if words[0] == "bertkit" and not {"|", ">", "&&", ";", "<"} & set(words):
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as printed:
            status = run_bertkit(words[1:])
        printed.flush()
        output = printed.buffer.getvalue().decode()
    else:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-c", text],
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        status, output = done.returncode, done.stdout.decode()
    if status:
        raise RuntimeError(f"{text!r} ended with {status}")
    return output


def run_page(
    page: Path, is_run: Callable[[ShownCommand], bool] = lambda command: True
) -> Iterator[tuple[ShownCommand, tuple[str, ...]]]:
    """The commands of a page, and the lines that each prints today."""
    os.environ["BROWSER"] = "true"  # a page that is opened is shown to nobody
    with tempfile.TemporaryDirectory() as folder, chdir(lay_out(page, Path(folder))):
        for command in filter(is_run, list_shown(page.read_text(encoding="utf-8"))):
            output = run_command(command.text).expandtabs().splitlines()
            yield command, tuple(line.rstrip() for line in output)


class Tolerance(NamedTuple):
    """By how much the numbers of a line may differ.

    Attributes:
        points: of a percentage.
        share: of other numbers with decimals, as a share of them.
        reason: why that much.
        counts: of whole numbers.
    """

    points: float
    share: float
    reason: str
    counts: int = 0


EXACT = Tolerance(ROUNDING, ROUNDING, "kernels round differently")


def find_differences(
    shown: tuple[str, ...],
    printed: tuple[str, ...],
    tolerance: Callable[[str], Tolerance] = lambda line: EXACT,
) -> str:
    """What differs between a page and what is printed, or "".

    Args:
        shown: the lines of the page; `…` stands for any number of lines.
        printed: the lines of today.
        tolerance: of a shown line. A figure with an interval may be any in the shown interval.
            Times and speeds aren't compared.
    """
    if OMITTED in shown:
        number = shown.index(OMITTED)
        num_last = len(shown) - number - 1
        if len(printed) < number + num_last:
            return f"{len(printed)} lines, fewer than are shown"
        shown = (*shown[:number], *shown[number + 1 :])
        printed = (*printed[:number], *printed[len(printed) - num_last :])
    for before, now in zip_longest(shown, printed, fillvalue="(nothing)"):
        if not _agree(before, now, tolerance(before)):
            return f"shown:   {before}\nprinted: {now}"
    return ""


def _agree(shown: str, printed: str, tolerance: Tolerance) -> bool:
    before, now = (DURATION.sub("0", line) for line in (shown, printed))
    if NUMBER.sub("0", before).split() != NUMBER.sub("0", now).split():
        return False
    estimates = zip(ESTIMATE.finditer(before), ESTIMATE.finditer(now), strict=True)
    before, now = (ESTIMATE.sub("", line) for line in (before, now))
    pairs = zip(NUMBER.finditer(before), NUMBER.findall(now), strict=True)
    return all(_is_within(one, other["value"]) for one, other in estimates) and all(
        abs(_to_number(one.group()) - _to_number(other)) <= _allow(one, tolerance)
        for one, other in pairs
    )


def _is_within(shown: re.Match[str], value: str) -> bool:
    return _to_number(shown["low"]) <= _to_number(value) <= _to_number(shown["high"])


def _allow(shown: re.Match[str], tolerance: Tolerance) -> float:
    if shown.string[shown.end() :].startswith(" %"):
        return max(tolerance.points, ROUNDING * _to_number(shown.group()))
    value = abs(_to_number(shown.group()))
    return max(tolerance.share * value, ROUNDING) if "." in shown.group() else tolerance.counts


def _to_number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def elide(shown: tuple[str, ...], printed: tuple[str, ...]) -> tuple[str, ...]:
    """What is printed, with `…` where the page has it."""
    if OMITTED not in shown:
        return printed
    number = shown.index(OMITTED)
    num_last = len(shown) - number - 1
    return (*printed[:number], OMITTED, *printed[len(printed) - num_last :])


def write_page(page: Path) -> None:
    """Replace the output of each command by today's."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for command, printed in reversed(list(run_page(page))):
        end = command.start + len(command.output)
        lines[command.start : end] = elide(command.output, printed)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def take_processor(name: str) -> None:
    """Take the precisions that `auto` takes on this kind of processor, as tests do."""
    chosen = str(PROCESSORS / f"{name}.txt")
    path = filter(None, [str(PROCESSORS), os.environ.get("PYTHONPATH")])
    os.environ.update(BERTKIT_TEST_PROCESSOR=chosen, PYTHONPATH=os.pathsep.join(path))
    processor.CPU_INFO = Path(chosen)
    processor.read_processor.cache_clear()


def main() -> None:
    """Write the pages that are named; with --json, print what the commands of one print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="print what commands print, as JSON")
    parser.add_argument("--processor", default="plain", help="a file of tests/processors, or here")
    arguments = parser.parse_args()
    if arguments.processor != "here":
        take_processor(arguments.processor)
    for page in arguments.pages:
        if arguments.json:
            print(json.dumps([printed for _, printed in run_page(page.resolve())]))
        else:
            write_page(page.resolve())


if __name__ == "__main__":
    main()
