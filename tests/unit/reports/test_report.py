"""Reports: self-contained, harmless, and true to their data."""

from html.parser import HTMLParser

import pytest

from bertkit.base.errors import StorageError
from bertkit.reports.line_chart import LineChart, Series
from bertkit.reports.report import (
    Bar,
    Bars,
    Charts,
    Command,
    Paragraph,
    Report,
    Table,
    format_cell,
    render_report,
    write_report,
)

HOSTILE = "</script></style><img src=x onerror=alert(1)>{{ 7 * 7 }}&\"'"


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def every_section(text: str) -> list:
    chart = LineChart(text, text, text, [Series(text, [(0, 1.0), (1, 0.5)])])
    return [
        Paragraph(text, title=text),
        Command(text, title=text),
        Table([text, "n"], [[text, 12345]], title=text, note=text),
        Bars([Bar(text, 0.2, text, is_highlighted=True)], title=text, note=text),
        Charts([chart], title=text, note=text),
    ]


def test_text_is_never_markup_in_any_section():
    harmless = Page(render_report(Report("t", "s", every_section("plain"))))
    hostile = Page(render_report(Report(HOSTILE, HOSTILE, every_section(HOSTILE))))
    assert hostile.tags == harmless.tags
    assert "script" not in hostile.tags
    assert "img" not in hostile.tags
    assert hostile.text.count("onerror=alert(1)>{{ 7 * 7 }}") >= 15


def test_nothing_is_fetched_and_the_policy_says_so():
    html = render_report(Report("t", "s", every_section("plain")))
    page = Page(html)
    attributes = dict(page.attributes)
    policy = attributes["content"] if "default-src" in attributes["content"] else html
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:;" in policy
    assert not {"src", "href", "srcset", "action", "onload"} & attributes.keys()
    assert "url(" not in html
    assert "http:" not in html
    assert "https:" not in html


def test_numbers_are_readable_and_stand_right():
    html = render_report(Report("t", "s", [Table(["name", "n"], [["a", 1234567]])]))
    assert '<td class="number">1,234,567</td>' in html
    assert '<th scope="col" class="number">n</th>' in html
    assert '<th scope="col">name</th>' in html
    assert [format_cell(value) for value in (0.123456, 1e-4, 12, "12")] == [
        "0.1235",
        "0.0001",
        "12",
        "12",
    ]


def test_bars_are_as_long_as_their_shares():
    bars = Bars([Bar("a", 0.1, "10 %"), Bar("b", 0.4, "40 %", is_highlighted=True)])
    assert [bars.width_percent(bar) for bar in bars.bars] == [25.0, 100.0]
    html = render_report(Report("t", "s", [bars]))
    assert '<div class="bar" style="width: 25.0%">' in html
    assert '<div class="bar highlighted" style="width: 100.0%">' in html
    assert Bars([Bar("a", 0.0, "0 %")]).width_percent(Bar("a", 0.0, "0 %")) == 0.0


def test_an_empty_table_and_no_sections_are_pages_too():
    assert "<table>" in render_report(Report("t", "s", [Table(["a"], [])]))
    assert "<h1>t</h1>" in render_report(Report("t", "s", []))


def test_the_page_is_written_whole(tmp_path):
    path = tmp_path / "report.html"
    record = write_report(path, Report("Größe", "s", []))
    assert path.stat().st_size == record.size_bytes
    assert path.read_text(encoding="utf-8") == render_report(Report("Größe", "s", []))
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_with_undecodable_bytes_does_not_stop_the_writing(tmp_path):
    name = b"caf\xe9".decode(errors="surrogateescape")
    write_report(tmp_path / "report.html", Report("t", "s", [Paragraph(name)]))
    assert "<p>caf?</p>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path):
    with pytest.raises(StorageError, match="can't be written"):
        write_report(tmp_path / "missing" / "report.html", Report("t", "s", []))
