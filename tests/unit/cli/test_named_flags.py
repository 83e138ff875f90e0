"""Flags that messages and help name exist in the command that shows them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wings import needs, needs_all_wings

import bertkit
from bertkit.cli.app import COMPLETION, build_app, list_commands, list_flags

SOURCE = Path(bertkit.__file__).parent
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
COMMAND = re.compile(r"(?:`(?:bertkit )?|bertkit )((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?)([^`\n;]*)")
OF_ALL = {"help", "version", "config", COMPLETION.removeprefix("--")}
OF_OTHERS = {"head"}  # `ray start --head`
# `serve` shows what these raise, and what the index of a corpus raises. Whatever else `retrieval`
# says has the advice of an index put in its place.
SERVED = ("serving", "inference", "checkpoints", "models", "tokenization", "nn")
SERVED_FILES = (
    *(f"retrieval/{name}.py" for name in ("index", "index_model", "index_search")),
    "retrieval/vector_index.py",
    "data/tables/text_files.py",
)


@pytest.fixture(scope="module")
def flags():
    """The flags of each command."""
    return {name: list_flags(command) for name, command in list_commands(build_app()).items()}


def read_literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file with their lines; those of f-strings have … for what is put in.

    Docstrings, the descriptions of settings, which are help, and bare flags are left out.
    """
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) or (
            isinstance(node, ast.keyword) and node.arg == "description"
        ):
            skipped.update(ast.walk(node.value))
        if node in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped.update(ast.walk(node))
            parts = [getattr(one, "value", None) for one in node.values]
            yield node.lineno, "".join(one if isinstance(one, str) else "…" for one in parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not FLAG.fullmatch(node.value)
        ):
            yield node.lineno, node.value


def find_named(text: str, flags: dict[str, set[str]]) -> Iterator[tuple[str, set[str]]]:
    """The commands that a text names, each with the flags behind it."""
    for words, rest in COMMAND.findall(text):
        for name in (words, words.partition(" ")[0]):
            if name in flags:
                yield name, set(FLAG.findall(words + rest))
                break


@needs_all_wings
def test_each_flag_that_a_message_names_is_one_of_some_command(flags):
    known = OF_ALL.union(OF_OTHERS, *flags.values())
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: --{flag}"
        for path in SOURCE.rglob("*.py")
        for line, text in read_literals(path)
        for flag in FLAG.findall(text)
        if flag not in known
    ]
    assert wrong == []


def test_a_command_that_a_message_names_has_the_flags_behind_it(flags):
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {name} has no --{flag}"
        for path in SOURCE.rglob("*.py")
        for line, text in read_literals(path)
        for name, named in find_named(text, flags)
        for flag in named - flags[name] - OF_ALL
    ]
    assert wrong == []


@needs("serving")
def test_what_serve_shows_names_its_flags_or_the_command_that_has_them(flags):
    paths = [path for room in SERVED for path in (SOURCE / room).rglob("*.py")]
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: --{flag}"
        for path in [*paths, *map(SOURCE.joinpath, SERVED_FILES)]
        for line, text in read_literals(path)
        for flag in set(FLAG.findall(text)) - flags["serve"] - OF_ALL
        if not any(flag in flags[name] for name, _ in find_named(text, flags))
    ]
    assert wrong == []


def test_the_help_of_an_option_names_flags_of_its_command(flags):
    wrong = [
        f"{name} {argument.name}: --{flag}"
        for name, command in list_commands(build_app()).items()
        for argument in command.assemble_argument_collection()
        for flag in FLAG.findall(argument.parameter.help or "")
        if flag not in flags[name]
    ]
    assert wrong == []


def test_flags_and_commands_are_found_in_messages():
    flags = {"search": {"overwrite"}, "finetune tag": {"scheme"}}
    text = "name it with `bertkit search --overwrite` or `finetune tag x --scheme plain`; or --no"
    assert list(find_named(text, flags)) == [
        ("search", {"overwrite"}),
        ("finetune tag", {"scheme"}),
    ]
