"""Count the house: lines, tests, commands and options, hooks, and which rooms know what.

    python tools/count_house.py [--json] [--check] [--where SUBJECT] [--list COUNT]

Lines are those of the files, with blanks and docstrings. A room knows a subject if its code (names
and strings; neither comments nor docstrings) has one of the words below. The tables in which the
core names wings aren't counted (`TABLES`): naming is all that they do.

Options are those of bertkit's own commands. A hook is a method, a property or a callable attribute
of a class that a subclass defines anew. A function is called from one place if its name is defined
once and read once in all of src, so what a library calls by name isn't counted.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
SOURCES = TOP / "src" / "bertkit"
WINGS = ("decoders", "integrations", "interpret", "serving")
TABLES = ("__init__.py", "base/wings.py", "cli/main.py")
SUBJECTS = {
    "attending to the left only": re.compile(
        r"causal|is_decoder|left.to.right|CausalLM|KVCache|kv_cache|LMHead|[Ss]eq2[Ss]eq"
        r"|[Ee]ncoder.?[Dd]ecoder|[Cc]ross.?[Aa]ttention|next_word"
    ),
    "next sentence": re.compile(r"next.?sentence|seq_relationship|is_next\b|IsNext", re.IGNORECASE),
    "remote addresses": re.compile(r"fsspec|(?<![a-z])remote|is_url|s3://|gs://", re.IGNORECASE),
}
Trees = Mapping[str, ast.Module]  # syntax trees by file
UNTYPED = frozenset({"Any", "object", "cast"})
ASKED = {
    "lines of the core": 41_000,
    "lines of src": 53_000,
    "lines of tests": 50_000,
    "commands": 39,  # one more for `index`, whose words are what an index of one's own needs
    "options": 160,
    "options shown by --help": 25,
    "Any, object and cast": 550,
    "hooks of a class": 10,
    "functions called from one place": 650,
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
    parser.add_argument("--list", choices=LISTED, help="list what a count counts")
    arguments = parser.parse_args()
    if arguments.where:
        for path in list_files(SOURCES):
            for word, line in find_words(path, SUBJECTS[arguments.where]):
                print(f"{path.relative_to(TOP)}:{line}: {word}")
        return 0
    if arguments.list:
        for name, value in LISTED[arguments.list]().items():
            print(f"{name}: {value}")
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
        "commands": len({re.sub("^index .*", "index", name) for name in list_options()}),
        "options": len(set().union(*list_options().values())),
        "options shown by --help": max(len(names) for names in list_shown_options().values()),
        "Any, object and cast": sum(count_untyped(read_trees()).values()),
        "hooks of a class": max(len(names) for names in list_hooks(read_trees()).values()),
        "functions called from one place": len(list_functions_called_once(read_trees())),
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


@cache
def list_options() -> dict[str, set[str]]:
    """Return the options of each command, without those of packages of their own."""
    sys.path.insert(0, str(SOURCES.parent))
    from bertkit.cli import help as shown
    from bertkit.cli.app import PACKAGES, build_app, list_commands

    return {
        name: shown.list_options(command)
        for name, command in list_commands(build_app()).items()
        if name.split()[0] not in PACKAGES
    }


def list_shown_options() -> dict[str, set[str]]:
    """Return the options of each command that `--help` shows."""
    options = list_options()
    from bertkit.cli.help import OFTEN, RARE

    return {name: those - (RARE - OFTEN.get(name, set())) for name, those in options.items()}


@cache
def read_trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each file of src."""
    return {
        str(path.relative_to(SOURCES)): ast.parse(path.read_text(encoding="utf-8"))
        for path in list_files(SOURCES)
    }


def count_untyped(trees: Trees) -> dict[str, int]:
    """Count `Any`, `object` and `cast` by file, but for their imports."""
    counts = {
        name: sum(isinstance(node, ast.Name) and node.id in UNTYPED for node in ast.walk(tree))
        for name, tree in trees.items()
    }
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def list_hooks(trees: Trees) -> dict[str, list[str]]:
    """Return the hooks of each class that has subclasses, most first."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    bases = {name: list_bases(node) & classes.keys() for name, node in classes.items()}
    members = {name: list_members(node) for name, node in classes.items()}
    hooks: dict[str, set[str]] = {}
    for name in classes:
        above, waiting = set[str](), list(bases[name])
        while waiting:
            if (base := waiting.pop()) not in above:
                above.add(base)
                waiting += bases[base]
        for base in above:
            called = {member for member, is_called in members[base].items() if is_called}
            hooks.setdefault(base, set()).update(called & members[name].keys())
    by_number = sorted(hooks.items(), key=lambda item: -len(item[1]))
    return {name: sorted(names) for name, names in by_number}


def list_bases(node: ast.ClassDef) -> set[str]:
    """Return the names of a class's bases, without their type arguments."""
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {getattr(base, "attr", getattr(base, "id", "")) for base in plain}


def list_members(node: ast.ClassDef) -> dict[str, bool]:
    """Return what a class defines, and whether it is called: a method, property or class."""
    found: dict[str, bool] = {}
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            found[part.name] = not part.name.startswith("__")
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            kind = ast.unparse(part.annotation)
            found[part.target.id] = "Callable" in kind or "type[" in kind
        elif isinstance(part, ast.Assign):
            names = (target.id for target in part.targets if isinstance(target, ast.Name))
            found |= dict.fromkeys(names, False)
    return found


def list_functions_called_once(trees: Trees) -> dict[str, str]:
    """Return the functions and methods whose name is defined once and read once, by file."""
    defined, read, places = Counter[str](), Counter[str](), dict[str, str]()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                defined[node.name] += 1
                places[node.name] = f"{path}:{node.lineno}"
            elif isinstance(node, ast.Attribute):
                read[node.attr] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[node.id] += 1
    return {name: place for name, place in places.items() if defined[name] == 1 and read[name] == 1}


LISTED: dict[str, Callable[[], Mapping[str, object]]] = {
    "options": list_options,
    "shown": list_shown_options,
    "untyped": lambda: count_untyped(read_trees()),
    "hooks": lambda: list_hooks(read_trees()),
    "once": lambda: list_functions_called_once(read_trees()),
}


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
