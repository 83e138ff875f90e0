"""The documentation of Python: read in one order, each paragraph once, and nothing imported."""

import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from bertkit.base.errors import StorageError
from bertkit_demo import python_docs
from bertkit_demo.python_docs import (
    Corpus,
    Module,
    find_dependencies,
    find_modules,
    read_documents,
    write_corpus,
)

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
    monkeypatch.setattr(python_docs, "read_topics", lambda skipped: {})
    add("first.py", f'"""{FIRST}"""\ndef f():\n    """{FIRST}"""\n'.encode())
    add("second.py", f'"""{FIRST}\n\n{SECOND}\n"""\nraise SystemExit\n'.encode())
    return add


def read(skipped: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(document.group, document.lines) for document in read_documents(skipped)]


def test_a_paragraph_comes_once(modules):
    skipped: list[str] = []
    assert read(skipped) == [("first", (FIRST,)), ("second", (SECOND,))]
    assert skipped == []


def test_sources_that_cannot_be_read_are_named_and_the_rest_is_written(modules, tmp_path, capsys):
    modules("gone.py", None)
    modules("latin.py", b'"""Caf\xe9 au lait is not encoded as it should be."""\n')
    modules("escape.py", b'"""A path such as \\N{oops} is not one that parses here."""\n')
    skipped: list[str] = []
    assert [group for group, _ in read(skipped)] == ["first", "second"]
    assert [place.split(" ")[0] for place in skipped] == ["gone.py", "latin.py", "escape.py"]
    write_corpus(tmp_path / "corpus", share=0.0)
    assert "left out 3 Python sources that can't be read or parsed, first gone.py (" in (
        capsys.readouterr().err
    )


def test_half_a_character_from_an_escape_is_replaced(modules):
    modules("half.py", b'"""This sentence has \\ud800 where a character should be."""\n')
    assert read([])[-1][1] == ("This sentence has \ufffd where a character should be.",)


def test_whole_packages_are_held_out_and_the_files_are_written_once(modules, tmp_path):
    modules("third.py", b'"""This sentence stands in the third module."""\n')
    found = python_docs.find_modules()
    found[1] = found[1]._replace(package="first")
    texts = set()
    for share in (0.0, 0.5, 0.99):
        corpus = write_corpus(tmp_path / str(share), share)
        assert corpus == Corpus.of(tmp_path / str(share))
        training, held_out = corpus.training.read_text(), corpus.held_out.read_text()
        assert (FIRST in training) == (SECOND in training)  # of one package
        assert sorted((training + held_out).split("\n\n")) == [
            "",
            FIRST,
            SECOND,
            "This sentence stands in the third module.",
        ]
        texts.add(training)
    assert "" in texts
    modules("fourth.py", b'"""This sentence is too late to be read."""\n')
    before = corpus.held_out.stat().st_mtime_ns
    assert write_corpus(tmp_path / "0.99", 0.0) == corpus
    assert corpus.held_out.stat().st_mtime_ns == before


def test_a_corpus_is_whole_or_not_there(modules, tmp_path, monkeypatch):
    def fail(name):
        raise StorageError("the disk is full")

    monkeypatch.setattr(python_docs, "choose_split", lambda group, settings: fail(group))
    with pytest.raises(StorageError):
        write_corpus(tmp_path / "corpus", 0.1)
    assert not (tmp_path / "corpus").exists()


def test_topics_are_documents_of_one_group(modules, monkeypatch):
    topics = {"b": "The second topic is about loops.", "a": "The first topic is about names."}
    monkeypatch.setattr(python_docs, "read_topics", lambda skipped: topics)
    assert read([])[:2] == [
        ("pydoc_data", ("The first topic is about names.",)),
        ("pydoc_data", ("The second topic is about loops.",)),
    ]


def test_python_without_its_topics_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    skipped: list[str] = []
    assert python_docs.read_topics(skipped) == {}
    assert [place.split(" ")[0] for place in skipped] == ["pydoc_data"]


def test_the_topics_of_this_python_have_text():
    assert len(python_docs.read_topics([])) > 50


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


def test_nothing_that_is_read_is_imported():
    code = (
        "import sys; from bertkit_demo.python_docs import find_modules; find_modules();"
        "print(sorted({'torch', 'sympy', 'networkx'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
