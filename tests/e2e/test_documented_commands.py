"""Every `bertkit` command line of the README and the guides is one that the program accepts.

Those with an output are run by test_shown_outputs.py.
"""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from cyclopts import CycloptsError
from pydantic import ValidationError
from tests.e2e.documentation import Block, list_pages, read_blocks

from bertkit.base.errors import BertkitError
from bertkit.cli.app import build_app
from bertkit.cli.main import find_flags, take_config_flag
from bertkit.cli.usage import describe_usage

SEPARATORS = {"|", "&&", ";"}
LAUNCHERS = {"srun", "torchrun"}
SHELL = {"", "bash", "console"}


class Command(NamedTuple):
    """A command line.

    Attributes:
        heading: the heading that it stands under.
        words: those after `bertkit`.
    """

    heading: str
    words: list[str]


def list_shown(page: str) -> list[Command]:
    """The command lines of a page, in order."""
    blocks = [block for block in read_blocks(page) if block.language in SHELL]
    return [Command(block.heading, words) for block in blocks for words in list_commands(block)]


def list_commands(block: Block) -> Iterator[list[str]]:
    """The words after `bertkit` of each command of a block, without what the shell does."""
    for line in block.code.replace("\\\n", "").splitlines():
        shown = line.removeprefix("$ ").replace("$SLURM_ARRAY_TASK_ID", "0")
        if "bertkit " not in shown or (block.language == "console" and shown == line):
            continue
        lexer = shlex.shlex(shown, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for words in split_list(list(lexer), SEPARATORS):
            if words[:1] == ["bertkit"] or ("bertkit" in words and words[0] in LAUNCHERS):
                yield next(split_list(words[words.index("bertkit") + 1 :], {">"}))


def split_list(words: list[str], separators: set[str]) -> Iterator[list[str]]:
    """The words between those that separate."""
    part: list[str] = []
    for word in words:
        if word in separators:
            yield part
            part = []
        else:
            part.append(word)
    yield part


COMMANDS = {page: shown for page in list_pages() if (shown := list_shown(page))}


def find_problem(words: list[str]) -> str | None:
    """Why the program would refuse these words before it does anything."""
    try:
        app = build_app()
        app.parse_args(take_config_flag(words)[0], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return describe_usage(error, words, find_flags(words))
    except (BertkitError, ValidationError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_are_accepted(page):
    found = {shlex.join(one.words): find_problem(one.words) for one in COMMANDS[page]}
    assert {words: problem for words, problem in found.items() if problem is not None} == {}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("$ bertkit embed texts.txt --outptu v.npy  # it's wrong", "did you mean --output?"),
        ("$ zcat a.gz | bertkit prepare - --tokenizer t/", "--output"),
        ("$ bertkit pretrain --data shards/ --output run/ --steps many > log.txt", "many"),
        ("$ bertkit view run/ \\\n    'a text' --layer 0", "layer"),
        ("$ bertkit clasify sentiment/ 'a text'", "classify"),
    ],
)
def test_a_wrong_command_line_is_found(line, problem):
    (words,) = list_commands(Block("console", "", 1, line))
    assert problem in str(find_problem(words))
