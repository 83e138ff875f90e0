"""`bertkit view` as a user runs it."""

import json
import re
import webbrowser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.closeness import close
from tests.e2e.small import without_precision
from tests.fonts import need_font

from bertkit.cli.main import main

TEXT = "the cat saw a dog ."
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def opened(monkeypatch):
    """Addresses for which the browser was started."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: addresses.append(url) or True)
    return addresses


def list_files() -> list[str]:
    return sorted(path.name for path in Path.cwd().iterdir())


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["view", *map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out, without_precision(captured.err)


def test_a_page_is_written_and_not_opened(model, capsys, opened):
    out, err = run(capsys, TEXT, "--model", model, "--views", "heads,model")
    finding, in_head, in_other_heads = out.splitlines()
    assert re.fullmatch(r"“.+” attends to “.+” with \d+\.\d % in head [12]\.[12]", finding)
    assert in_head.startswith(finding.split(" attends")[0] + " in head ")
    assert "; mean of all 4: " in in_other_heads
    assert err.startswith("attention.html: 8 tokens, 2 layers of 2 heads, 0.")
    page = Path("attention.html").read_text("utf-8")
    assert TEXT in page
    assert opened == []
    assert list_files() == ["attention.html"]


def test_the_browser_is_started_when_it_is_asked_for(model, capsys, opened, monkeypatch):
    words = ["--model", model, TEXT, "a hat", "--views", "heads", "--output", "a b.html", "--open"]
    run(capsys, *words)
    assert opened == [Path("a b.html").resolve().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert "no browser was found; open a b.html" in run(capsys, *words, "--overwrite")[1]


def test_figures_are_written_without_a_page(model, capsys):
    need_font()
    figure = ["--layer", 2, "--head", 1, "--token", "dog"]
    for name in ("dog.svg", "dog.png"):
        out, err = run(capsys, TEXT, "--model", model, "--output", name, *figure)
        assert out == ""
        assert err.startswith(f"{name}: layer 2")
    svg = ET.parse("dog.svg").getroot()
    assert "dog" in {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert Path("dog.png").read_bytes().startswith(PNG)
    assert list_files() == ["dog.png", "dog.svg"]


def test_numbers_are_printed_without_a_page(model, capsys):
    out, err = run(capsys, "--model", model, "--json", TEXT, "--token", "dog", "--without", "1.2")
    numbers = json.loads(out)
    assert err == ""
    assert (numbers["token"], numbers["without"]) == (5, ["1.2"])
    assert [len(head["weights"]) for head in numbers["heads"]] == [8] * 4
    assert sum(numbers["heads"][3]["weights"]) == close(1, "float32")
    assert list_files() == []


def test_text_of_the_command_line_is_mended(model, capsys):
    out, _ = run(capsys, "--model", model, "the \udcff cat", "a \udcff", "--json")
    assert json.loads(out)["texts"] == ["the \ufffd cat", "a \ufffd"]
    out.encode()  # what isn't Unicode can't be, and no pipe would take it
