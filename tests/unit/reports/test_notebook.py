"""What a notebook shows of results: escaped, shortened, and a table for a list."""

from dataclasses import dataclass
from typing import Any

from bertkit.inference.fill_mask import Candidate, FilledText
from bertkit.inference.text_scorer import TextScore
from bertkit.reports.notebook import MAX_ROWS, ResultList, Tabular
from bertkit.retrieval.hits import Hit
from bertkit.tasks.answer.scoring import Answer
from bertkit.tasks.answer.scoring import AnswerCandidate as Span
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.tag.decoding import NamedEntity, TaggedWord, Tagging


@dataclass(frozen=True)
class Finding(Tabular):
    text: str
    share: float
    is_good: bool
    id: str | None = None
    parts: tuple[int, ...] = ()


def display(result: Any) -> str:
    """Return what a notebook displays."""
    html: str = result._repr_html_()
    return html


def test_a_list_is_a_table_and_a_list():
    found = ResultList([Finding("one", 0.123456, True), Finding("two", 1234.0, False, "b")])
    assert found == [Finding("one", 0.123456, True), Finding("two", 1234.0, False, "b")]
    html = display(found)
    assert "<th>text</th><th>share</th><th>is_good</th><th>id</th></tr>" in html
    assert "<td>0</td><td>one</td><td>0.123</td><td>yes</td><td></td>" in html
    assert "<td>1</td><td>two</td><td>1,234</td><td>no</td><td>b</td>" in html


def test_texts_are_escaped_legible_and_shortened():
    html = display(Finding("<script>alert(1)</script>\x1b[31m" + "long " * 500, 0.5, True))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html
    assert len(html) < 1000
    label = "<img src=x onerror=alert(1)>"
    found = Classification(label, 0.9, {label: 0.9, "b": 0.1}, (label,))
    assert "<img" not in display(found) + display(ResultList([found]))


def test_only_so_many_rows_are_shown():
    html = display(ResultList([Finding(str(n), 0.0, True) for n in range(MAX_ROWS + 1234)]))
    assert html.count("<tr>") == 1 + MAX_ROWS + 1
    assert "and 1,234 more" in html
    assert "<table>" in display(ResultList([]))


def test_hits_of_several_queries_have_the_number_of_theirs():
    hits = [Hit("x", 0.9, "a cat"), Hit("y", 0.5, "a dog")]
    html = display(ResultList([ResultList(hits), ResultList(hits[:1])]))
    assert "<td>0</td><td>x</td><td>0.900</td><td>a cat</td>" in html
    assert "<td>1</td><td>x</td><td>0.900</td><td>a cat</td>" in html


def test_one_result_shows_what_is_in_it():
    blanks = [[Candidate("hat", 5, 0.75)], [Candidate("##s", 9, 0.5), Candidate("dog", 4, 0.25)]]
    html = display(FilledText("a [MASK] [MASK]", blanks, "a hats"))
    assert "<td>2</td><td>##s</td><td>9</td><td>50.0 %</td>" in html
    both = Classification("b", 0.7, {"a": 0.6, "b": 0.7, "c": 0.1}, ("a", "b"))
    assert "<td>b</td><td>70.0 %</td><td>yes</td></tr><tr><td>a</td>" in display(both)
    assert "<td>a, b</td><td>70.0 %</td>" in display(ResultList([both]))


def test_answers_show_the_others():
    spans = (Span("Ada", 0, 3, 0.9, 2.0, 1.0), Span("", None, None, 0.1, 0.0, 0.0))
    assert display(Answer("Ada", 0, 3, 0.9, None, spans)).count("<tr>") == 3
    assert "<th>perplexity</th>" in display(TextScore("a", 2, 0, -1.0))


def test_a_tagging_shows_its_words():
    tagged = Tagging(
        (TaggedWord("Ada", "B-PER", 0.9), TaggedWord("left", "O", 0.8)),
        (NamedEntity("PER", "Ada", 0, 1, 0.9),),
    )
    assert "<td>left</td><td>O</td><td>80.0 %</td>" in display(tagged)
    assert "<td>Ada left</td><td>PER: Ada</td>" in display(ResultList([tagged]))
