"""Python source → docstrings → paragraphs of running text.

The docstrings are found by one regular expression that reads strings, comments, brackets and the
headers of functions and classes as Python does, at some 50 MB a second; parsing the same files
into syntax trees takes more than ten times as long. It takes no string that isn't a docstring, and
overlooks a few (one in seven thousand) whose headers it can't follow.
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
    """One expression for a module's docstring, and one for the next function's or class's.

    All repetition is possessive, so that each character is looked at once or twice. Before Python
    3.11.5 a possessive group whose last turn fails half-way leaves off where that was (CPython's
    issue 106052). A last choice that always fails begins where the turn did, and restores that.
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
    """The docstrings of a module and of its functions and classes, in their order."""
    start = 0
    if first := _MODULE_DOCSTRING.match(source):
        yield _evaluate(first[1])
        start = first.end()
    else:
        source = "\n" + source  # a header is looked for after a line's end
    for match in _NEXT_DOCSTRING.finditer(source, start):
        if match[1] is not None:
            yield _evaluate(match[1])


def _evaluate(literal: str) -> str:
    """The value of a string literal."""
    body = literal.lstrip("rRuU")
    if "\\" in body and literal[0] not in "rR":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is somebody else's business
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
    """The running text of a docstring: each paragraph on one line, without markup.

    Headings, doctests, code, lists, field lists and tables are left out; the descriptions in a
    parameter table are kept where they are paragraphs of their own.
    """
    for number, block in enumerate(_BLANK_LINES.split(docstring.expandtabs())):
        lines = block.strip("\n").split("\n")
        if number == 0 and len(lines) > 1:  # the first line begins beside the quotes
            lines[0] = " " * _indentation(lines[1]) + lines[0].lstrip()
        for run in _find_runs(lines):
            text = _clean(" ".join(" ".join(run).split()))
            if _is_running_text(text):
                yield text


def _find_runs(lines: list[str]) -> Iterator[list[str]]:
    """Neighboring lines of equal indentation; deeper ones only where they begin a thought."""
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
    """Take reStructuredText's inline markup away."""
    if "_" in text:
        text = _CITATION.sub("", text)
    if "`" in text:
        text = _LINK.sub(r"\1", _ROLE.sub(r"\1", text))
    if "`" in text or "*" in text:
        text = _EMPHASIS.sub(lambda match: match[1] or match[2], text)
    return text[:-1] if text.endswith("::") else text


def _is_running_text(text: str) -> bool:
    """Whether this reads like a sentence or several, and not like code, a formula or a heading."""
    num_words = text.count(" ") + 1
    if num_words < MIN_WORDS or not (text[0].isupper() or text[0] in "\"'("):
        return False
    if text[-1].isalpha() and num_words < MIN_WORDS_WITHOUT_STOP:
        return False
    if not (text[-1].isalpha() or text[-1] in ".!?:)\"'"):
        return False
    return len(_NO_LETTER.findall(text)) <= MAX_SHARE_OF_SYMBOLS * len(text)
