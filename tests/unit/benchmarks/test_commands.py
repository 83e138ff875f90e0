"""The commands of benchmarks that documentation and `make gpu` give have flags that exist."""

import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS = ROOT / "benchmarks"
PROGRAM = r"python benchmarks/(bench_\w+|run_gpu|grid|scale_tables|simulated_ranks)\.py"
INLINE = re.compile(f"`{PROGRAM}([^`]*)`")  # may go over lines
BLOCK = re.compile(rf"(?<!`){PROGRAM}((?:[^\n\\#]|\\+\n)*)")
# One process for all, since most of the time goes into imports; main() is left after its flags.
PARSE = """
import argparse, contextlib, importlib, io, json, sys

class Parsed(BaseException):
    pass

def parse_and_leave(*given):
    parse_args(*given)
    raise Parsed

parse_args = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = parse_and_leave
refused = []
for name, words in json.load(sys.stdin):
    sys.argv = [name, *words]
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            importlib.import_module(name).main()
        except Parsed:
            continue
        except SystemExit:
            refused.append([name, words, told.getvalue()])
print(json.dumps(refused))
"""


def list_documented() -> list[tuple[str, list[str]]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *BENCHMARKS.glob("*.py")]
    texts = [page.read_text("utf-8") for page in pages if page.name != "CHANGELOG.md"]
    found = [groups for text in texts for kind in (INLINE, BLOCK) for groups in kind.findall(text)]
    return [(name, shlex.split(re.sub(r"\\*\n", " ", words))) for name, words in found]


def list_parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    parts = importlib.import_module("gpu_parts").PARTS
    programs = [(Path(part.words[0]).stem, list(part.words[1:])) for part in parts]
    return [(name, words) for name, words in programs if name.startswith("bench_")]


def parse(commands: list[tuple[str, list[str]]]) -> list[list[object]]:
    """The commands that their programs refuse, with what they say."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PARSE],
        cwd=BENCHMARKS,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_programs_know_the_flags_that_they_are_given(monkeypatch):
    commands = [*list_documented(), *list_parts(monkeypatch)]
    assert {path.stem for path in BENCHMARKS.glob("bench_*.py")} <= {name for name, _ in commands}
    wrong = ("bench_step", ["--no-such-flag"])
    (refused,) = parse([*commands, wrong])
    assert refused[:2] == [*wrong]
