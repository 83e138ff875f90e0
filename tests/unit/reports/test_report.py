"""Reports: self-contained, harmless, and true to their data."""

import math

from tests.unit.reports.reading import Reader

from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.figures.reliability import Bin, ReliabilityCurve, ReliabilityDiagram
from bertkit.reports.mistakes import Highlight, MarkedText, MistakeRow, Mistakes
from bertkit.reports.report import (
    Bar,
    Bars,
    Charts,
    Command,
    Paragraph,
    Report,
    Table,
    render_report,
    write_report,
)
from bertkit.reports.text import MetricCell

HOSTILE = "</b></script></style></details></mark><img src=x onerror=alert(1)>{{ 7 * 7 }}&\"'"


EACH_ONCE = {(true, predicted): 1 for true in range(31) for predicted in range(31)}


def every_section(text: str) -> list:
    chart = LineChart(text, text, text, [Series(text, [(0, 1.0), (1, 0.5)])])
    matrix = ConfusionMatrix(text, [text, "b"], {(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4})
    many = ConfusionMatrix(text, [text] * 31, EACH_ONCE)
    reliability = ReliabilityDiagram(text, [ReliabilityCurve(text, [Bin(0.5, 0.5, 1)])])
    marked = MarkedText(text, name=text, highlights=[Highlight(1, 5, "true", text)])
    folded = MarkedText(text + "x" * 30_000, highlights=[Highlight(1, 5, "predicted", text)])
    return [
        Paragraph(text, title=text),
        Command(text, title=text),
        Table([text, "n"], [[text, 12345]], title=text, note=text),
        Bars([Bar(text, 0.2, text, is_highlighted=True)], title=text, note=text),
        Charts([chart, matrix, many, reliability], title=text, note=text),
        Mistakes([MistakeRow([marked, folded], text, text, 0.5, text)], title=text, note=text),
    ]


def test_text_is_never_markup_in_any_section():
    harmless = Reader(render_report(Report("t", "s", every_section("plain text"))))
    hostile = Reader(render_report(Report(HOSTILE, HOSTILE, every_section(HOSTILE))))
    tags, plain = ([element["tag"] for element in one.elements] for one in (hostile, harmless))
    assert tags == plain
    assert not {"script", "img"} & {*tags}
    assert hostile.text.count("onerror=alert(1)>{{ 7 * 7 }}") >= 100


def test_nothing_is_fetched_and_the_policy_says_so():
    html = render_report(Report("t", "s", every_section("plain")))
    page = Reader(html)
    [policy] = [meta["content"] for meta in page.find("meta") if "http-equiv" in meta]
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:;" in policy
    assert not {"src", "href", "srcset", "action", "onload"} & set().union(*page.elements)
    assert "url(" not in html
    assert "http:" not in html
    assert "https:" not in html


def test_numbers_are_readable_and_stand_right():
    cells = ["a", 1234567, MetricCell(0.912, interval=(0.897, 0.926))]
    html = render_report(Report("t", "s", [Table(["name", "n", "f1"], [cells])]))
    assert '<td class="number">0.912 (0.897–0.926)</td>' in html
    assert '<th scope="col" class="number">f1</th>' in html
    assert '<td class="number">1,234,567</td>' in html
    assert '<th scope="col" class="number">n</th>' in html
    assert '<th scope="col">name</th>' in html
    matrix = ConfusionMatrix("Many", [f"label {index}" for index in range(31)], EACH_ONCE)
    html = render_report(Report("t", "s", [Charts([matrix])]))
    assert "<details>" not in html
    assert "<td>label 0</td><td>label 1</td>" in html


def test_bars_and_whiskers_are_as_long_as_their_shares():
    bars = Bars([Bar("a", 0.1, "10 %"), Bar("b", 0.4, "40 %", is_highlighted=True)])
    assert [bars.width_percent(bar.share) for bar in bars.bars] == [25.0, 100.0]
    html = render_report(Report("t", "s", [bars]))
    assert '<div class="bar" style="width: 25.0%">' in html
    assert '<div class="bar highlighted" style="width: 100.0%">' in html
    assert Bars([Bar("a", 0.0, "0 %")]).width_percent(0.0) == 0.0
    bars = Bars([Bar("a", 0.4, "", extent=(0.3, 0.5)), Bar("b", 0.2, "", extent=(-0.1, 0.25))])
    assert [bars.width_percent(bar.share) for bar in bars.bars] == [80.0, 40.0]
    assert [bars.whisker_percent(bar.extent) for bar in bars.bars] == [(60.0, 40.0), (0.0, 50.0)]
    html = render_report(Report("t", "s", [bars]))
    assert '<div class="whisker" style="left: 60.0%; width: 40.0%"></div>' in html


def test_what_is_negative_or_not_defined_has_no_length():
    bars = Bars([Bar("a", share, "") for share in (-0.3, math.nan, math.inf, 0.2)])
    assert [bars.width_percent(bar.share) for bar in bars.bars] == [0.0, 0.0, 0.0, 100.0]


def test_every_picture_has_its_legend_and_its_table():
    chart = LineChart("Loss", "step", "nats", [Series("dev", [(1, 0.5)])])
    html = render_report(Report("t", "s", [Charts([chart])]))
    assert '<figcaption>Loss <span class="unit">nats</span></figcaption>' in html
    assert 'class="series series-0"><line x1="1" y1="5" x2="25" y2="5"/></svg>dev</li>' in html
    assert "<summary>In numbers</summary>" in html
    assert '<tr><td class="number">1</td><td class="number">0.500</td></tr>' in html


def test_mistakes_are_marked_by_offsets_and_long_texts_are_folded():
    marked = MarkedText("a <b> c", highlights=[Highlight(2, 5, "predicted", "X")])
    long = MarkedText("begin " + "x" * 500 + " end", name="context")
    mistakes = [
        MistakeRow([marked, long], "yes", "no", 0.987, "dev.csv, line 3"),
        MistakeRow([], "", ""),
    ]
    html = render_report(Report("t", "s", [Mistakes(mistakes)]))
    assert '<mark class="predicted">&lt;b&gt;<small>predicted X</small></mark> c' in html
    assert "<b>Predicted</b> <bdi>no</bdi> (98.7\N{NO-BREAK SPACE}%)" in html
    assert html.count("\N{NO-BREAK SPACE}%)</span>") == 1
    assert "<b>True</b> <bdi>yes</bdi>" in html
    assert "dev.csv, line 3" in html
    folded = html[html.index("<summary>") : html.index("</details>")]
    assert folded.count("begin ") == 2
    assert " end</span>" in folded.split("</summary>")[1]
    assert "510 characters" in folded.split("</summary>")[0]
    assert '<div class="note">context</div>' in html


def test_what_a_page_leaves_out_and_what_is_empty_is_said():
    mistake = MistakeRow([MarkedText("x" * 20_007), MarkedText("")], "a", "b")
    html = render_report(Report("t", "s", [Mistakes([mistake])]))
    assert "The last 7 characters aren’t shown." in html
    assert '<span class="note">(empty)</span>' in html
    assert "There is none." in render_report(Report("t", "s", [Mistakes([])]))


def test_the_page_is_written_whole_whatever_bytes_a_name_has(tmp_path):
    path, name = tmp_path / "report.html", b"caf\xe9".decode(errors="surrogateescape")
    report = Report("Größe", "s", [Paragraph(name), Table(["a"], [])])
    record = write_report(path, report)
    assert path.stat().st_size == record.size_bytes
    assert path.read_text(encoding="utf-8") == render_report(report)
    assert "<p>caf\ufffd</p>" in render_report(report)
