"""`python-docs:` reads what it says, in one order, once, and imports nothing."""

import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from bertkit.base.errors import InputError
from bertkit.data.readers import open_corpus, python_docs
from bertkit.data.readers.document import ReadReport
from bertkit.data.readers.python_docs import (
    Module,
    find_dependencies,
    find_modules,
    read_documents,
)
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import TextSource

SOURCE = TextSource("python-docs:", "python-docs")
FIRST = "This sentence stands in both modules."
SECOND = "This sentence stands in the second module only."


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Two small modules instead of a whole installation; returns how to add more."""
    found: list[Module] = []

    def add(name: str, content: bytes | None) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        found.append(Module(name.removesuffix(".py"), name, path))

    monkeypatch.setattr(python_docs, "find_modules", lambda: found)
    monkeypatch.setattr(python_docs, "read_topics", lambda report: {})
    add("first.py", f'"""{FIRST}"""\ndef f():\n    """{FIRST}"""\n'.encode())
    add("second.py", f'"""{FIRST}\n\n{SECOND}\n"""\nraise SystemExit\n'.encode())
    return add


def read(report: ReadReport) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (document.group, document.lines)
        for document in read_documents(SOURCE, ReaderSettings(), report)
    ]


def test_a_paragraph_comes_once_and_repeats_are_counted(modules):
    report = ReadReport()
    assert read(report) == [("first", (FIRST,)), ("second", (SECOND,))]
    assert report.counts == {"repeated-paragraph": 2}
    assert report.places["repeated-paragraph"] == ["first.py", "second.py"]


def test_sources_that_cannot_be_read_are_counted_and_named(modules):
    modules("gone.py", None)
    modules("latin.py", b'"""Caf\xe9 au lait is not encoded as it should be."""\n')
    modules("escape.py", b'"""A path such as \\N{oops} is not one that parses here."""\n')
    report = ReadReport()
    assert [group for group, _ in read(report)] == ["first", "second"]
    assert report.counts["unreadable-source"] == 3
    assert [place.split(" ")[0] for place in report.places["unreadable-source"]] == [
        "gone.py",
        "latin.py",
        "escape.py",
    ]


def test_half_a_character_from_an_escape_is_replaced_and_counted(modules):
    modules("half.py", b'"""This sentence has \\ud800 where a character should be."""\n')
    report = ReadReport()
    assert read(report)[-1][1] == ("This sentence has \ufffd where a character should be.",)
    assert report.places["invalid-utf8"] == ["half.py"]


def test_strict_reading_stops_at_a_source_that_cannot_be_read(modules):
    modules("gone.py", None)
    with pytest.raises(InputError, match=r"gone\.py"):
        read(ReadReport(is_strict=True))


def test_progress_counts_the_bytes_of_sources(modules):
    seen: list[int] = []
    source = TextSource("python-docs:", "python-docs", advance=seen.append)
    list(read_documents(source, ReaderSettings(), ReadReport()))
    assert len(seen) == 2
    assert min(seen) > len(FIRST)


def test_topics_are_documents_of_one_group(modules, monkeypatch):
    topics = {"b": "The second topic is about loops.", "a": "The first topic is about names."}
    monkeypatch.setattr(python_docs, "read_topics", lambda report: topics)
    assert read(ReadReport())[:2] == [
        ("pydoc_data", ("The first topic is about names.",)),
        ("pydoc_data", ("The second topic is about loops.",)),
    ]


def test_python_without_its_topics_is_counted(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    report = ReadReport()
    assert python_docs.read_topics(report) == {}
    assert report.counts == {"unreadable-source": 1}


def test_the_topics_of_this_python_have_text():
    report = ReadReport()
    topics = python_docs.read_topics(report)
    assert len(topics) > 50
    assert not report.counts


def test_dependencies_are_followed_without_extras_and_each_once(tmp_path, monkeypatch):
    requires = {
        "Root": ["middle.one>=1", 'never; extra == "more"', 'absent; sys_platform == "mars"'],
        "middle-one": ["leaf[fast]<2", "Root"],
        "leaf": [],
        "never": [],
    }
    for name, needs in requires.items():
        folder = tmp_path / f"{name.replace('-', '_')}-1.dist-info"
        folder.mkdir()
        lines = [f"Name: {name}", "Version: 1", *(f"Requires-Dist: {need}" for need in needs)]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert [package.name for package in find_dependencies("root")] == ["leaf", "middle-one"]


def test_modules_of_a_package_leave_tests_and_vendored_code_out(tmp_path):
    folder = tmp_path / "thing-1.dist-info"
    folder.mkdir()
    names = ["thing/a.py", "thing/tests/b.py", "thing/_vendor/c.py", "../bin/d.py", "e.py", "f.so"]
    (folder / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    (folder / "METADATA").write_text("Name: thing\nVersion: 1\n")
    found = list(python_docs._modules_of(PathDistribution(folder)))
    assert [(module.package, module.name) for module in found] == [
        ("thing", "thing/a.py"),
        ("e", "e.py"),
    ]
    assert found[0].path == tmp_path / "thing" / "a.py"


def test_this_installation_is_found_in_one_order():
    modules = find_modules()
    assert modules == sorted(modules)
    assert len(set(modules)) == len(modules)
    packages = {module.package for module in modules}
    assert {"json", "argparse", "torch", "numpy", "rich"} <= packages
    assert not {"bertkit", "pytest", "test", "idlelib"} & packages
    folders = {part for module in modules for part in Path(module.name).parts[:-1]}
    assert not folders & python_docs.SKIPPED_FOLDERS


def test_the_scheme_opens_the_reader(modules):
    corpus = open_corpus(["python-docs:"], ReaderSettings())
    assert [document.group for document in corpus.documents()] == ["first", "second"]
    assert corpus.report.counts["repeated-paragraph"] == 2


def test_nothing_that_is_read_is_imported():
    code = (
        "import sys; from bertkit.data.readers.python_docs import find_modules; find_modules();"
        "print(sorted({'torch', 'sympy', 'networkx'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
