"""Count the house: lines of the core and of wings, tests, commands, and which rooms know what.

    python tools/count_house.py [--json] [--check]

Lines are those of the files, with blanks and docstrings. A room knows a subject if its code (names
and strings; neither comments nor docstrings) has one of the words below. The tables in which the
core names wings aren't counted (`TABLES`): naming is all that they do.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
SOURCES = TOP / "src" / "bertkit"
WINGS = ("decoders", "interpret", "serving")
TABLES = ("__init__.py", "base/wings.py", "cli/main.py")
SUBJECTS = {
    "attending to the left only": re.compile(
        r"causal|is_decoder|left.to.right|CausalLM|KVCache|kv_cache|LMHead|[Ss]eq2[Ss]eq"
        r"|[Ee]ncoder.?[Dd]ecoder|[Cc]ross.?[Aa]ttention|next_word"
    ),
    "next sentence": re.compile(r"next.?sentence|seq_relationship|is_next\b|IsNext", re.IGNORECASE),
    "remote addresses": re.compile(r"fsspec|(?<![a-z])remote|is_url|s3://|gs://", re.IGNORECASE),
}
ASKED = {
    "lines of the core": 45_000,
    "lines of src": 57_000,
    "lines of tests": 55_000,
    "commands": 34,
    "rooms: attending to the left only": 3,
    "rooms: next sentence": 7,
    "rooms: remote addresses": 3,
}


def main() -> int:
    """Print the counts beside what was asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail if a count is above its limit")
    parser.add_argument("--where", choices=SUBJECTS, help="list the places that know a subject")
    arguments = parser.parse_args()
    if arguments.where:
        for path in list_files(SOURCES):
            for word, line in find_words(path, SUBJECTS[arguments.where]):
                print(f"{path.relative_to(TOP)}:{line}: {word}")
        return 0
    counts = count()
    if arguments.json:
        print(json.dumps(counts, indent=2))
    else:
        print_counts(counts)
    above = [name for name, limit in ASKED.items() if measure(counts, name) > limit]
    return 1 if arguments.check and above else 0


def count() -> dict[str, Any]:
    """Return lines by room, sums, commands, and the rooms that know each subject."""
    rooms: dict[str, int] = {}
    known: dict[str, set[str]] = {subject: set() for subject in SUBJECTS}
    for path in list_files(SOURCES):
        room = path.relative_to(SOURCES).parts[0]
        rooms[room] = rooms.get(room, 0) + count_lines(path)
        for subject, pattern in SUBJECTS.items():
            if str(path.relative_to(SOURCES)) not in TABLES and any(find_words(path, pattern)):
                known[subject].add(room)
    core = sum(lines for room, lines in rooms.items() if room not in WINGS)
    return {
        "rooms": rooms,
        "lines of the core": core,
        "lines of src": sum(rooms.values()),
        "lines of tests": sum(count_lines(path) for path in list_files(TOP / "tests")),
        "commands": count_commands(),
    } | {f"rooms: {subject}": sorted(names) for subject, names in known.items()}


def print_counts(counts: dict[str, Any]) -> None:
    """Print a table of rooms, then the counts that have a limit."""
    for room, lines in sorted(counts["rooms"].items(), key=lambda item: -item[1]):
        print(f"  {room:<16}{lines:>8,}{'  wing' if room in WINGS else ''}")
    for name, limit in ASKED.items():
        value = measure(counts, name)
        listed = ", ".join(counts[name]) if isinstance(counts[name], list) else ""
        mark = "" if value <= limit else "  above"
        print(f"{name:<36}{value:>8,} of {limit:>7,}{mark}  {listed}".rstrip())


def measure(counts: dict[str, Any], name: str) -> int:
    """Return a count, or how many rooms are listed."""
    value = counts[name]
    return len(value) if isinstance(value, list) else int(value)


def list_files(folder: Path) -> list[Path]:
    """The Python files below a folder."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def count_lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def count_commands() -> int:
    """Count the commands of the command line without those of packages of their own."""
    sys.path.insert(0, str(SOURCES.parent))
    from bertkit.cli.main import PACKAGES, build_app, list_commands

    commands = list_commands(build_app())
    return sum(name.split()[0] not in PACKAGES for name in commands)


def find_words(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Yield the names and strings of a file's code that a pattern matches, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = set(find_docstrings(tree))
    for node in ast.walk(tree):
        if node in prose:
            continue
        for word in list_words(node):
            if pattern.search(word):
                yield word, getattr(node, "lineno", 0)


def find_docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the constants that are docstrings."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield body[0].value


def list_words(node: ast.AST) -> list[str]:
    """Return what a node of the syntax tree names."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    fields = ("id", "attr", "name", "arg", "asname", "module")
    return [value for field in fields if isinstance(value := getattr(node, field, None), str)]


if __name__ == "__main__":
    sys.exit(main())
