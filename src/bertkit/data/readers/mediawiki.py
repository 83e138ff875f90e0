"""MediaWiki XML dumps: the running text of articles.

Headings, lists, tables, templates, references, files and categories are left out, as the paper asks
for text and not for "lists, tables, and headers". Mark-up is parsed by mwparserfromhell, XML by
expat, piece by piece; a document type, and with it every entity of its own, is refused.

Source: Devlin et al. 2018, section 3.1; mediawiki.org, "Help:Export".
"""

import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import Source

PAGE_LIMIT_CHARACTERS = 4 << 20  # MediaWiki itself takes 2 MiB
READ_BYTES = 1 << 18
MAX_UNCLOSED = 300  # the parser's time grows with the square of what is opened and never closed
OPENED_TAG = re.compile(r"<(?!(?:br|hr|li|wbr)\b)[a-z]", re.IGNORECASE)
FIELDS = frozenset({"title", "ns", "text", "redirect"})
NOT_RUNNING_TEXT = re.compile(r"\s*(?:[*#:;=|!{}]|----)")
DROPPED_TAGS = frozenset(
    {"ref", "references", "table", "gallery", "math", "chem", "syntaxhighlight", "source", "score"}
    | {"timeline", "imagemap", "pre", "code", "ul", "ol", "dl", "li", "dt", "dd", "hr"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
)
# Line-start mark-up is told by what it looks like once its line is put together.
LINE_TAGS = frozenset({"li", "dt", "dd", "hr"})
DROPPED_LINKS = re.compile(r"\s*(?:file|image|category|media)\s*:", re.IGNORECASE)
BEHAVIOUR_SWITCH = re.compile(r"__[A-Z]+__")
EMPTY_BRACKETS = re.compile(r"\s*\(\s*[,;]*\s*\)")
SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?])(?=\s|$)")
SENTENCE_END = (".", "!", "?", "…", '"', "”", "»", ")", "。", "！", "？", "।", "؟", "۔")


def read_documents(
    source: Source, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """A document for each article; each is its own group."""
    num_pages = 0
    for page in read_pages(source, report):
        num_pages += 1
        place = f"{source.name}: {page.get('title', '').strip() or f'page {num_pages}'}"
        if "redirect" in page:
            report.add("redirect", place)
        elif page.get("ns", "0").strip() != "0":
            report.add("not-an-article", place)
        elif len(page.get("text", "")) > PAGE_LIMIT_CHARACTERS:
            report.add("long-record", place)
        else:
            yield from _article(page.get("text", ""), place, report)
    if not num_pages and not source.is_faulty:
        report.add("empty-file", source.name)


def read_pages(source: Source, report: ReadReport) -> Iterator[dict[str, str]]:
    """The pages of a dump, one in memory at a time."""
    collector = _PageCollector()
    is_empty = True
    with source.open(report) as stream:
        try:
            while data := stream.read(READ_BYTES):
                is_empty = False
                collector.parser.Parse(data, False)
                yield from collector.take()
            if not is_empty and not source.is_faulty:  # a missed end is counted once
                collector.parser.Parse(b"", True)
        except expat.ExpatError as error:
            yield from collector.take()
            source.count_fault(report, "broken-xml", str(error))


def running_text(markup: str) -> tuple[str, ...]:
    """The paragraphs of an article without everything that isn't running text.

    Raises:
        ValueError: the mark-up can't be parsed, or not in reasonable time.
    """
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    if count_unclosed(markup) > MAX_UNCLOSED:
        raise ValueError("too many tables, templates, links or tags are never closed")
    try:
        code = mwparserfromhell.parse(BEHAVIOUR_SWITCH.sub("", markup), skip_style_tags=True)
        lines = "".join(map(_keep, code.nodes)).split("\n")
        paragraphs = [_plain(line) for line in lines if not NOT_RUNNING_TEXT.match(line)]
    except (ParserError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return tuple(paragraph for paragraph in paragraphs if paragraph)


def count_unclosed(markup: str) -> int:
    """About how many tables, templates, links or tags are opened and never closed."""
    num_tags = len(OPENED_TAG.findall(markup)) - markup.count("</") - markup.count("/>")
    num_templates = markup.count("{{") - markup.count("}}")
    num_links = markup.count("[[") - markup.count("]]")
    num_tables = markup.count("{|") - markup.count("|}")
    return max(num_tags, num_templates, num_links, num_tables)


def _keep(node: Any) -> str:
    """The mark-up of a part of an article; nothing of what isn't running text."""
    from mwparserfromhell.nodes import Comment, Heading, Tag, Template, Wikilink

    if isinstance(node, Heading):
        return "\n"
    if isinstance(node, Template | Comment):
        return ""
    if isinstance(node, Wikilink):
        return "" if DROPPED_LINKS.match(str(node.title)) else str(node)
    if isinstance(node, Tag):
        return _keep_tag(node)
    return str(node)


def _keep_tag(node: Any) -> str:
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
    """One line without mark-up; empty unless it reads like a sentence."""
    import mwparserfromhell

    text = str(mwparserfromhell.parse(line, skip_style_tags=True).strip_code())
    text = EMPTY_BRACKETS.sub("", text.replace("'''", "").replace("''", ""))
    text = SPACE_BEFORE_STOP.sub(r"\1", " ".join(text.split()))
    return text if text.endswith(SENTENCE_END) else ""


def _article(markup: str, place: str, report: ReadReport) -> Iterator[Document]:
    try:
        lines = running_text(markup)
    except ValueError:
        report.add("broken-page", place)
        return
    if lines:
        yield Document(lines, place)
    else:
        report.add("empty-document", place)


class _PageCollector:
    """Gathers the fields of each page from expat's events."""

    def __init__(self) -> None:
        self._pages: list[dict[str, str]] = []
        self._page: dict[str, str] = {}
        self._field: str | None = None
        self._parts: list[str] = []
        self._size = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def take(self) -> list[dict[str, str]]:
        """The pages that are whole by now."""
        pages, self._pages = self._pages, []
        return pages

    def _refuse_doctype(self, name: str, *_: object) -> None:
        raise expat.ExpatError(f"a document type ({name}) isn't part of a dump")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "page":
            self._page = {}
        self._field = tag if tag in FIELDS else None
        self._parts, self._size = [], 0

    def _text(self, data: str) -> None:
        # What goes beyond the limit is dropped, and tells that the page is too long.
        if self._field is not None and self._size <= PAGE_LIMIT_CHARACTERS:
            self._size += len(data)
            self._parts.append(data)

    def _end(self, tag: str) -> None:
        if tag == self._field:
            self._page[tag] = "".join(self._parts)
        self._field = None
        if tag == "page":
            self._pages.append(self._page)
