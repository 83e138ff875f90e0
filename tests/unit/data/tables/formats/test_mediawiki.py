"""MediaWiki dumps: running text only, one page at a time, and no XML tricks."""

import bz2
import tracemalloc
from pathlib import Path

import pytest
from tests.waiting import little_computing

from bertkit.data.documents import open_corpus
from bertkit.data.sentences import ends_like_a_sentence
from bertkit.data.sources import ReaderSettings
from bertkit.data.tables.decoder import RowDecoder, open_content
from bertkit.data.tables.formats import mediawiki
from bertkit.data.tables.formats.mediawiki import running_lines

PAGE = """{{Short description|A bird}}
{{Infobox bird
| name = Wren {{nobr|(small)}}
| image = [[File:Wren.jpg|250px]]
}}
[[File:Wren in tree.jpg|thumb|A [[wren]] sits in a tree.<ref>{{cite book|title=Birds}}</ref>]]
'''The wren''' is a ''small'' [[a|bird]].<ref>A</ref> ({{IPA|r}}) It<!--x--> was [http://a.b loud].

== Range ==
It lives in [[Europe]], and {{convert|5|km}} up in the hills.<ref name="a" />
{| class="wikitable"
! Place !! Number
|-
| Hills || Many.
|}
After the table a paragraph goes on.

* An item of a list ends like a sentence.
# So does a numbered one.
: And an indented one.
; A term
----
<gallery>
File:Nest.jpg|A nest is shown.
</gallery>
<nowiki>A line with [[no link]] stays as it is.</nowiki>
<b>Bold markup</b> is no reason to leave<br />a line out.
<div>{{Template|in a div}}Text in a division stays.<ref>Not this.</ref></div>
<ul><li>Not a list in HTML either.</li></ul>
Only words without an end
__NOTOC__
=== See also ===
{{Reflist}}
[[Category:Birds of Europe.]]
[[de:Zaunkönig]]
"""
RUNNING = (
    "The wren is a small bird. It was loud.",
    "It lives in Europe, and up in the hills.",
    "After the table a paragraph goes on.",
    "A line with [[no link]] stays as it is.",
    "Bold markup is no reason to leave a line out.",
    "Text in a division stays.",
)


def dump(*pages: str) -> bytes:
    head = "<mediawiki><siteinfo><sitename>W</sitename></siteinfo>"
    return f"{head}{''.join(pages)}</mediawiki>".encode()


def page(title: str, text: str, ns: int = 0, extra: str = "") -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return (
        f"<page><title>{title}</title><ns>{ns}</ns>{extra}"
        f"<revision><text>{text}</text></revision></page>"
    )


def read(path: Path, content: bytes):
    path.write_bytes(content)
    corpus = open_corpus([str(path)], ReaderSettings())
    return [(document.group, document.lines) for document in corpus.documents()], corpus.report


def test_running_text_is_all_that_is_left():
    assert tuple(line for line in running_lines(PAGE) if ends_like_a_sentence(line)) == RUNNING


# What is closed before it is opened, elsewhere, by another name or in a comment isn't closed.
OPEN = [
    "{{",
    "[[",
    "<b>",
    "{{a|[[b",
    "{|\n",
    "[http://a.b ",
    "[//a.b ",
    "<ref name='",
    "<br ",
    "<!--",
]
OPEN += ["<b><br/>", "<b></i>", "<b x='/>'>", "[http://a.b [[x]]", "[http://a.b <ref>]</ref>"]
OPEN += ["[http://a.b <!--]-->", "<b><nowiki></b></nowiki>", "{{a|[http://b}}]", "<nowiki>"]
OPEN += ["[ht{{x}}tp://a.b "]


@pytest.mark.parametrize("mark", OPEN)
def test_marks_that_are_never_closed_are_refused_and_a_few_are_not(tmp_path, mark):
    with little_computing():
        assert running_lines("Text.\n" + mark * 10)[0] == "Text."
        documents, report = read(tmp_path / "w.xml", dump(page("Open", mark * 20_000)))
    assert documents == []
    assert report.counts == {"broken-page": 1}
    assert report.places["broken-page"] == [f"{tmp_path.name}/w.xml: Open"]


@pytest.mark.parametrize("mark", ["</b>", "}}", "]]", "]", "|}"])
def test_ends_before_beginnings_close_nothing(mark):
    beginning = {"</b>": "<b>", "}}": "{{", "]]": "[[", "]": "[http://a.b ", "|}": "{|\n"}[mark]
    assert mediawiki.count_unclosed(mark * 400 + beginning * 200) == 200


MARK_UP = ["<b>b</b>", "{{a|[[b]]|}}", "{{{1|}}}", "[[File:a|[http://b c]]]", '<ref name="a\'b" />']
MARK_UP += ["{|\n|-\n| [[a|b]]\n|}", "<!--<b>[[-->", "<nowiki>[[</nowiki>", "<nowiki /><td><li>a"]
MARK_UP += ["<Ref name=a>[//b c]</ref >", "[[a|[[b]]]]", "a[1] < b", "[a b", "<br>"]


@pytest.mark.parametrize("mark", MARK_UP)
def test_mark_up_that_is_closed_is_not_counted(mark):
    assert mediawiki.count_unclosed(mark * 500) == 0


@pytest.mark.parametrize("mark", ["''", "* ", "<br>", "== ", "\n", "<b>b</b>", "[[a]]"])
def test_other_marks_take_little_time_however_many(mark):
    with little_computing():
        running_lines(mark * 5_000 + " text.")


def test_articles_are_documents_and_the_rest_is_counted(tmp_path):
    content = dump(
        page("Wren", "It sings.\nIt flies."),
        page("Jenny Wren", "#REDIRECT [[Wren]]", extra='<redirect title="Wren" />'),
        page("Talk:Wren", "Does it sing?", ns=1),
        page("List", "* Nothing but items."),
    )
    documents, report = read(tmp_path / "w.xml.bz2", bz2.compress(content))
    place = f"{tmp_path.name}/w.xml.bz2"
    assert documents == [(f"{place}: Wren", ("It sings.", "It flies."))]
    assert report.counts == {"redirect": 1, "not-an-article": 1, "empty-document": 1}
    assert report.places["redirect"] == [f"{place}: Jenny Wren"]
    assert report.places["not-an-article"] == [f"{place}: Talk:Wren"]


def test_pages_across_the_borders_of_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(mediawiki, "READ_BYTES", 7)
    content = dump(page("Ä & b".replace("&", "&amp;"), "Çelik & more < less."), page("B", "Two."))
    documents, report = read(tmp_path / "w.xml", content)
    assert [lines for _, lines in documents] == [("Çelik & more < less.",), ("Two.",)]
    assert documents[0][0].endswith(": Ä & b")
    assert not report.counts


def test_broken_xml_ends_the_file_and_what_came_before_is_kept(tmp_path):
    content = dump(page("A", "One."), page("B", "Two."))
    unbalanced = content.replace(b"Two.</text>", b"Two.</r>")
    for cut in (content[:-40], unbalanced):
        documents, report = read(tmp_path / "w.xml", cut)
        assert [lines for _, lines in documents] == [("One.",)]
        assert report.counts == {"broken-xml": 1}
    assert read(tmp_path / "w.xml", b"no XML at all")[1].counts == {"broken-xml": 1}


def test_entities_of_its_own_are_refused_at_once(tmp_path):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    content = f'<!DOCTYPE m [<!ENTITY l0 "ha">{laughs}]><mediawiki>{page("A", "x")}</mediawiki>'
    content = content.replace("<text>x", "<text>&l9;")
    with little_computing():
        documents, report = read(tmp_path / "w.xml", content.encode())
    assert documents == []
    assert report.counts == {"broken-xml": 1}
    assert "document type" in report.places["broken-xml"][0]


def test_a_page_over_the_limit_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(mediawiki, "PAGE_LIMIT_CHARACTERS", 100)
    content = dump(page("Long", "Much text. " * 20), page("Short", "Little text."))
    documents, report = read(tmp_path / "w.xml", content)
    assert [lines for _, lines in documents] == [("Little text.",)]
    assert report.counts == {"long-record": 1}
    assert report.places["long-record"] == [f"{tmp_path.name}/w.xml: Long"]


def test_lines_without_an_end_are_counted(tmp_path):
    content = dump(page("Wren", "It sings.\nIn a tree\n\n== Range ==\nIn Europe\n* item"))
    documents, report = read(tmp_path / "w.xml", content)
    assert [lines for _, lines in documents] == [("It sings.",)]
    assert report.counts == {"unended-line": 2}
    assert report.places["unended-line"] == [f"{tmp_path.name}/w.xml: Wren"]


@pytest.mark.parametrize(
    "start",
    [
        "<page a='",
        *(
            pytest.param(start, marks=pytest.mark.exhaustive)
            for start in ("<page><!--", "<page><?a ", "<", "<page>&")
        ),
    ],
    ids=lambda start: start[-2:],
)
def test_a_token_without_end_ends_the_file_at_once(tmp_path, start):
    path = tmp_path / "w.xml"
    with little_computing():
        documents, report = read(path, f"<mediawiki>{start}{'x' * (64 << 20)}".encode())
    assert (documents, report.counts) == ([], {"broken-xml": 1})
    assert "over 1 MiB" in report.places["broken-xml"][0]


def test_tags_within_each_other_without_end_are_broken_xml(tmp_path):
    documents, report = read(tmp_path / "w.xml", dump(page("A", "One."), "<a>" * 1000))
    assert [lines for _, lines in documents] == [("One.",)]
    assert report.counts == {"broken-xml": 1}
    assert "more than 100 tags" in report.places["broken-xml"][0]


def test_a_huge_page_takes_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(mediawiki, "PAGE_LIMIT_CHARACTERS", 1 << 16)
    path = tmp_path / "w.xml"
    path.write_bytes(dump(page("Long", "Much text. " * (1 << 20)), page("Short", "Little text.")))
    tracemalloc.start()
    with open_content(path, decoder := RowDecoder("w.xml"), is_text=False) as stream:
        pages = mediawiki.read_rows(stream, decoder).records
        sizes = [len(str(found.values["text"])) for found in pages]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes[0] > 1 << 16
    assert sizes[1] == len("Little text.")
    assert peak < 4e6
