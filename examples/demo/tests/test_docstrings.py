"""What counts as a docstring, and what as running text."""

import ast
import sysconfig
import textwrap
from pathlib import Path

import pytest
from tests.waiting import little_computing

from bertkit_demo.docstrings import find_docstrings, find_paragraphs

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))


def docstrings_by_syntax_tree(source: str) -> list[str]:
    """What Python's own parser takes for docstrings, in the order of the source."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                found.append((node.body[0].lineno, text))
    return [text for _, text in sorted(found)]


REAL_MODULES = ["argparse", "asyncio/tasks", "typing", "json/decoder", "enum", "email/header"]


@pytest.mark.parametrize("name", REAL_MODULES)
def test_finds_what_the_parser_finds_in_real_modules(name):
    source = (STANDARD_LIBRARY / f"{name}.py").read_text(encoding="utf-8")
    assert list(find_docstrings(source)) == docstrings_by_syntax_tree(source)


TRAPS = {
    "string in a body": "def f():\n    x = 1\n    '''not me'''\n",
    "assigned": "x = '''not me'''\nclass A:\n    y = \"\"\"nor me\"\"\"\n",
    "formatted": "def f():\n    f'''not me'''\ndef g():\n    b'not me'\n",
    "expression": "def f():\n    '''not %s''' % 'me'\n",
    "dictionary after colon": "x = {1:\n    '''not me'''}\n",
    "if block": "if True:\n    '''not me'''\n",
    "lambda": "x = (lambda:\n    '''not me''')\n",
    "code in a string": "x = \"\"\"\ndef f():\n    '''not me'''\n\"\"\"\n",
    "code in a docstring": 'def f():\n    """Me.\n\n    def g():\n        \'not me\'\n    """\n',
    "quote in a comment": "# don't\ndef f():\n    # it's\n    '''me'''\n",
    "default values": "def f(a=')', b={'x': [1, (2, 3)]}, *, c: 'int' = 3) -> 'str':\n    'me'\n",
    "several lines": "class A(\n    B,  # it's :\n    metaclass=C,\n):\n\n    r'''me \\d'''\n",
    "escapes": "def f():\n    'me\\n\\x41\\'s'\n",
    "one line": "def f(): 'me'\ndef g(): return 'not me'\n",
    "asynchronous, nested": "async def f():\n    def g():\n        'me'\n    'not me'\n",
    "after a comment": "# -*- coding: utf-8 -*-\n\n'me'\nimport os\n'not me'\n",
    "quotes within": 'def f():\n    """me ""quoted"" text"""\n',
    "a name like a keyword": "define = 1\nclassic = '''not me'''\ndef_ = 'no'\n",
}


@pytest.mark.parametrize("source", TRAPS.values(), ids=TRAPS.keys())
def test_takes_docstrings_and_nothing_else(source):
    assert list(find_docstrings(source)) == docstrings_by_syntax_tree(source)


def test_source_that_does_not_parse_is_read_as_far_as_it_goes():
    assert list(find_docstrings('def f():\n    \'me\'\nx = ((\n"""open')) == ["me"]


@pytest.mark.parametrize("unit", ['"', "'''", "def f(", "\n", "(", "#", "\\", "def f():\n"])
def test_hostile_source_takes_linear_time(unit):
    with little_computing():
        list(find_docstrings(unit * 200_000))


def paragraphs(docstring: str) -> list[str]:
    return list(find_paragraphs(textwrap.dedent(docstring).strip("\n")))


def test_paragraphs_are_joined_and_their_markup_removed():
    docstring = """Return the :class:`~collections.Counter` of ``words``, *sorted*
    by **count**; see `the guide <https://example.org>`_ and the paper [1]_.

    It never fails on text::

        words = count(x)
    """
    assert list(find_paragraphs(docstring)) == [
        "Return the collections.Counter of words, sorted by count; see the guide and the paper.",
        "It never fails on text:",
    ]


@pytest.mark.parametrize(
    "block",
    [
        ">>> Fraction(1, 2) is not a sentence.",
        "- A list item that reads like a sentence.",
        "1. A numbered item that reads like a sentence.",
        ":param path: The folder that is read first.",
        ".. note:: This one is a directive of its own.",
        "x = compute(a, b)[0] + table[1, 2] * 7.",
        "=====  =====\nA very long heading of a table.\n=====  =====",
        "Parameters\n----------",
        "Short one.",
    ],
)
def test_what_is_not_running_text_is_left_out(block):
    kept = "This sentence is what remains."
    assert paragraphs(f"{kept}\n\n{block}\n\n{kept}") == [kept, kept]


def test_a_list_or_doctest_ends_its_paragraph():
    assert paragraphs("It can do two things:\n- Jump over the dog.\n- Sleep near the fox.") == [
        "It can do two things:"
    ]


def test_descriptions_in_a_parameter_table_are_kept_and_its_terms_not():
    table = """
    Parameters
    ----------
    path : str
        The folder that is read first.
    limit : int, optional
        How many lines are read at most.
    """
    assert paragraphs(table) == [
        "The folder that is read first.",
        "How many lines are read at most.",
    ]


def test_a_continued_line_is_no_paragraph_of_its_own():
    table = """
    Read the tables of the Romans.

    Args:
        path (str): Where the tables of the
            Roman Empire were kept in the end.
    """
    assert paragraphs(table) == ["Read the tables of the Romans."]
