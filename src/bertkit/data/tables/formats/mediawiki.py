"""MediaWiki XML dumps: the prose of articles.

Headings, lists, tables, templates, references, files and categories are left out, because the paper
ignores "lists, tables, and headers". mwparserfromhell parses the markup and expat the XML, both
in pieces; a document type declaration, and thus any custom entity, is rejected.

Source: Devlin et al. 2018, section 3.1; mediawiki.org, "Help:Export".
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.parsers import expat

from bertkit.data.tables.decoder import RowDecoder
from bertkit.data.tables.record import Record, Rows

PAGE_LIMIT_CHARACTERS = 4 << 20  # MediaWiki's own limit is 2 MiB
READ_BYTES = 1 << 18
MAX_DEPTH = 100  # expat allocates about a hundred bytes for each open tag
MAX_UNCLOSED = 300  # the parser's time is quadratic in the number of unclosed elements
TOKEN_LIMIT_BYTES = 1 << 20  # expat buffers a tag or comment whole, and rescans it each time
FIELDS = frozenset({"title", "ns", "text", "redirect"})
NOT_RUNNING_TEXT = re.compile(r"\s*(?:[*#:;=|!{}]|----)")
DROPPED_TAGS = frozenset(
    {"ref", "references", "table", "gallery", "math", "chem", "syntaxhighlight", "source", "score"}
    | {"timeline", "imagemap", "pre", "code", "ul", "ol", "dl", "li", "dt", "dd", "hr"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
)
# Markup at the start of a line is recognized by NOT_RUNNING_TEXT once the line is assembled.
LINE_TAGS = frozenset({"li", "dt", "dd", "hr"})
DROPPED_LINKS = re.compile(r"\s*(?:file|image|category|media)\s*:", re.IGNORECASE)
BEHAVIOR_SWITCH = re.compile(r"__[A-Z]+__")
EMPTY_BRACKETS = re.compile(r"\s*\(\s*[,;]*\s*\)")
ATTRIBUTES = r"""(?:[^<>"']|"[^<>"]*+"|'[^<>']*+')*+"""
VERBATIM = (
    "nowiki|pre|math|chem|ce|gallery|source|syntaxhighlight|score|timeline|imagemap|hiero|graph"
)
MARK = re.compile(
    rf"<(?:br|wbr|hr|img|li|dt|dd|th|td|tr)\b{ATTRIBUTES}>"  # void elements
    rf"|<[^\W\d]{ATTRIBUTES}(?<=/)>"
    rf"|(?P<verbatim><!--|<(?:{VERBATIM})\b(?={ATTRIBUTES}>))"
    rf"|<(?P<tag>[^\W\d]\w*+){ATTRIBUTES}>|(?P<broken><[^\W\d])|</(?P<tag_end>\w++)"
    r"|(?P<opening>\{\{|\[\[|\{\||\[(?=[a-z][a-z\d+.-]*+:|//))"
    r"|(?P<closing>\}\}|\](?=\]\](?!\]))|\]\]|\]|\|\}(?!\}))",
    re.IGNORECASE,
)
OPENING_OF = {"}}": "{{", "]]": "[[", "]": "[", "|}": "{|"}
SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?])(?=\s|$)")


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each page of a dump, in bounded memory."""
    return Rows(tuple(sorted(FIELDS)), _read_pages(stream, decoder))


def _read_pages(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    collector = _PageCollector()
    is_empty = True
    try:
        while data := stream.read(READ_BYTES):
            is_empty = False
            collector.feed(data)
            yield from _take_pages(collector, decoder)
        if not is_empty and not decoder.is_faulty:  # a truncated file is counted only once
            collector.parser.Parse(b"", True)
    except expat.ExpatError as error:
        yield from _take_pages(collector, decoder)
        decoder.refuse_rest("broken-xml", str(error))


def _take_pages(collector: "_PageCollector", decoder: RowDecoder) -> Iterator[Record]:
    for page in collector.take():
        decoder.finish_row()
        decoder.where = page.get("title", "").strip() or f"page {decoder.report.num_rows}"
        yield Record(page, decoder.place)


def running_lines(markup: str) -> list[str]:
    """Return an article's lines without markup, headings, lists, tables and blank lines."""
    from mwparserfromhell.parser import ParserError

    try:
        code = _parse(BEHAVIOR_SWITCH.sub("", markup))
        lines = "".join(map(_keep, code.nodes)).split("\n")
        running = (line for line in lines if line.strip() and not NOT_RUNNING_TEXT.match(line))
        plain = list(map(_plain, running))
    except (ParserError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return [line for line in plain if line]


def _parse(markup: str) -> Any:
    import mwparserfromhell

    if count_unclosed(markup) > MAX_UNCLOSED:
        raise ValueError("too many tables, templates, links or tags are never closed")
    return mwparserfromhell.parse(markup, skip_style_tags=True)


def count_unclosed(markup: str) -> int:
    """Estimate how many tables, templates, links or tags are opened and never closed.

    Elements that overlap instead of nesting count as unclosed; counting stops beyond
    `MAX_UNCLOSED`.
    """
    opened: list[str] = []
    num_of: Counter[str] = Counter()
    num_unclosed = position = 0
    while num_unclosed <= MAX_UNCLOSED and (mark := MARK.search(markup, position)):
        position, kind = mark.end(), mark.lastgroup
        text = mark[kind].lower() if kind else ""
        if kind == "verbatim":
            end = "-->" if text == "<!--" else f"</{text[1:]}"
            found = re.compile(end, re.IGNORECASE).search(markup, position)
            position = found.end() if found else position
            num_unclosed += not found
        elif kind in {"tag", "opening"}:
            opened.append(text)
            num_of[text] += 1
        elif kind == "broken":
            num_unclosed += 1
        elif num_of[text := OPENING_OF.get(text, text)]:
            while (last := opened.pop()) != text:
                num_of[last] -= 1
                num_unclosed += 1
            num_of[text] -= 1
    return num_unclosed + len(opened)


def _keep(node: Any) -> str:
    """Return the markup of a node, or nothing if it isn't prose."""
    from mwparserfromhell.nodes import Comment, Heading, Tag, Template, Wikilink

    if isinstance(node, Heading):
        return "\n"
    if isinstance(node, Template | Comment):
        return ""
    if isinstance(node, Wikilink):
        return "" if DROPPED_LINKS.match(str(node.title)) else str(node)
    if not isinstance(node, Tag):
        return str(node)
    name = str(node.tag).strip().lower()
    if name in LINE_TAGS and node.wiki_markup:
        return str(node.wiki_markup)
    if name in DROPPED_TAGS:
        return ""
    if name == "br":
        return " "
    if name == "nowiki" or node.contents is None:
        return str(node)
    return "".join(map(_keep, node.contents.nodes))


def _plain(line: str) -> str:
    """Return a line without markup."""
    text = str(_parse(line).strip_code())
    text = EMPTY_BRACKETS.sub("", text.replace("'''", "").replace("''", ""))
    return SPACE_BEFORE_STOP.sub(r"\1", " ".join(text.split()))


class _PageCollector:
    """Collects the fields of each page from expat's events."""

    def __init__(self) -> None:
        self._pages: list[dict[str, str]] = []
        self._page: dict[str, str] = {}
        self._field: str | None = None
        self._parts: list[str] = []
        self._size = self._num_fed = self._depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def feed(self, data: bytes) -> None:
        """Parse the next bytes."""
        self.parser.Parse(data, False)
        self._num_fed += len(data)
        if self._num_fed - self.parser.CurrentByteIndex > TOKEN_LIMIT_BYTES:
            raise expat.ExpatError("a tag or a comment of over 1 MiB isn't part of a dump")

    def take(self) -> list[dict[str, str]]:
        """Return and remove the completed pages."""
        pages, self._pages = self._pages, []
        return pages

    def _refuse_doctype(self, name: str, *_: str | int | None) -> None:
        raise expat.ExpatError(f"a document type ({name}) isn't part of a dump")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise expat.ExpatError(f"more than {MAX_DEPTH} tags within each other aren't a dump")
        if tag == "page":
            self._page = {}
        self._field = tag if tag in FIELDS else None
        self._parts, self._size = [], 0

    def _text(self, data: str) -> None:
        # Text beyond the limit is dropped; the length still shows that the page is too long.
        if self._field is not None and self._size <= PAGE_LIMIT_CHARACTERS:
            self._size += len(data)
            self._parts.append(data)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == self._field:
            self._page[tag] = "".join(self._parts)
        self._field = None
        if tag == "page":
            self._pages.append(self._page)
