"""Extraction of prose paragraphs from docstrings in Python source.

One regular expression finds the docstrings: it skips strings, comments, brackets and the headers of
functions and classes as Python's grammar does, at about 50 MB/s; parsing into syntax trees takes
more than ten times as long. It returns only true docstrings, and misses a few (one in seven
thousand) whose headers it can't parse.
"""

import re
import warnings
from ast import literal_eval
from collections.abc import Iterator
from itertools import groupby

MIN_WORDS = 4
MIN_WORDS_WITHOUT_STOP = 6
MAX_SHARE_OF_SYMBOLS = 0.15
MAX_BRACKET_DEPTH = 5


def _build_scanner() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Build one pattern for a module's docstring and one for the next function's or class's.

    All repetition is possessive, so that each character is scanned once or twice. Before Python
    3.11.5 a possessive group whose last iteration fails midway ends at that position (CPython
    issue 106052). A final alternative that always fails restores the iteration's start.
    """
    back = "|(?!)"
    string = (
        rf'(?:"""(?:[^"\\]++|\\.|""?(?!"){back})*+"""'
        rf"|'''(?:[^'\\]++|\\.|''?(?!'){back})*+'''"
        rf'|"(?:[^"\\\n]++|\\.{back})*+"'
        rf"|'(?:[^'\\\n]++|\\.{back})*+')"
    )
    comment = r"#[^\n]*+"
    leaf = rf"[^()\[\]{{}}\"'#]++|{string}|{comment}"
    bracketed = rf"(?:{leaf}{back})*+"
    for _ in range(MAX_BRACKET_DEPTH - 1):
        bracketed = rf"(?:{leaf}|[(\[{{]{bracketed}[)\]}}]{back})*+"
    header = (
        r"[ \t]*+(?:async[ \t]++)?(?:def|class)[ \t]++\w++"
        rf"(?:[^()\[\]{{}}\"'#:\n]++|[(\[]{bracketed}[)\]]|{string}{back})*+:"
    )
    gap = rf"(?:[ \t\r\f]*+(?:{comment})?\n{back})*+[ \t]*+"
    docstring = rf"([rRuU]?{string})(?=[ \t\r]*(?:#|\n|\Z))"
    skipped = rf"(?:[^\"'#\n]++|{string}|{comment}|\n(?![ \t]*+(?:async|def|class)\b){back})*+"
    return (
        re.compile(rf"\ufeff?{gap}{docstring}", re.DOTALL),
        re.compile(rf"{skipped}(?:\n(?:{header}(?:{gap}{docstring})?)?|.|\Z)", re.DOTALL),
    )


_MODULE_DOCSTRING, _NEXT_DOCSTRING = _build_scanner()


def find_docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module and of its functions and classes, in source order."""
    start = 0
    if first := _MODULE_DOCSTRING.match(source):
        yield _evaluate(first[1])
        start = first.end()
    else:
        source = "\n" + source  # the pattern expects a newline before a header
    for match in _NEXT_DOCSTRING.finditer(source, start):
        if match[1] is not None:
            yield _evaluate(match[1])


def _evaluate(literal: str) -> str:
    """Return the value of a string literal."""
    body = literal.lstrip("rRuU")
    if "\\" in body and literal[0] not in "rR":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in foreign code are harmless here
            return str(literal_eval(literal))
    width = 3 if body[:3] in {'"""', "'''"} else 1
    return body[width:-width]


_BLANK_LINES = re.compile(r"\n[ \t\r\f]*\n")
_NOT_RUNNING_TEXT = re.compile(r"[ \t]*(?:>>>|\.\.\.|\.\. |[-*+•|] |:\w[^:]*:|@\w|\(?\w{1,2}[.)] )")
_UNDERLINE = re.compile(r"[ \t]*[^\w\s]{3,}[ \t]*")
_TERM = re.compile(r".*:[ \t]*|[ \t]*[\w*.,` ]+( : .*)?")
_ROLE = re.compile(r":[\w:+-]+:`~?!?([^`<]*?)(?:\s*<[^`>]*>)?`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_*")
_CITATION = re.compile(r"\s*\[[\w#*]+\]_")
_EMPHASIS = re.compile(r"``?([^`]+)``?_*|(?<!\w)\*\*?(\w[^*]*)\*\*?(?!\w)")
_NO_LETTER = re.compile(r"[^\w\s]|[\d_]")


def find_paragraphs(docstring: str) -> Iterator[str]:
    """Yield the prose of a docstring: each paragraph on one line, without markup.

    Headings, doctests, code, lists, field lists and tables are left out; the descriptions in a
    parameter table are kept if they are separate paragraphs.
    """
    for number, block in enumerate(_BLANK_LINES.split(docstring.expandtabs())):
        lines = block.strip("\n").split("\n")
        if number == 0 and len(lines) > 1:  # the first line follows the quotes directly
            lines[0] = " " * _indentation(lines[1]) + lines[0].lstrip()
        for run in _find_runs(lines):
            text = _clean(" ".join(" ".join(run).split()))
            if _is_running_text(text):
                yield text


def _find_runs(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of equally indented lines; later runs only after a term or a colon."""
    if len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]):
        lines = lines[2:]
    before = None
    for _, group in groupby(lines, _indentation):
        run = list(group)
        if before is None or _TERM.fullmatch(before):
            ends = [index for index, line in enumerate(run) if _NOT_RUNNING_TEXT.match(line)]
            if ends != [0]:
                yield run[: ends[0]] if ends else run
        before = run[-1]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _clean(text: str) -> str:
    """Remove reStructuredText's inline markup."""
    if "_" in text:
        text = _CITATION.sub("", text)
    if "`" in text:
        text = _LINK.sub(r"\1", _ROLE.sub(r"\1", text))
    if "`" in text or "*" in text:
        text = _EMPHASIS.sub(lambda match: match[1] or match[2], text)
    return text[:-1] if text.endswith("::") else text


def _is_running_text(text: str) -> bool:
    """Whether a text reads like sentences, and not like code, a formula or a heading."""
    num_words = text.count(" ") + 1
    if num_words < MIN_WORDS or not (text[0].isupper() or text[0] in "\"'("):
        return False
    if text[-1].isalpha() and num_words < MIN_WORDS_WITHOUT_STOP:
        return False
    if not (text[-1].isalpha() or text[-1] in ".!?:)\"'"):
        return False
    return len(_NO_LETTER.findall(text)) <= MAX_SHARE_OF_SYMBOLS * len(text)
