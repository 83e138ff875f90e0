"""The code of the guide runs as it stands, and prints what its comments say."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "integrations.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
LANGCHAIN, HAYSTACK, QDRANT, LANCEDB, BERTOPIC, KEYBERT, MTEB = BLOCKS


def list_printed(block):
    return re.findall(r"print\(.*\)  # (.*)", block)


@pytest.mark.parametrize(
    ("package", "block"), [("langchain_core", LANGCHAIN), ("haystack", HAYSTACK)]
)
def test_code_for_an_index_runs(package, block, tmp_path, monkeypatch, capsys):
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, GUIDE.name, "exec"), {})
    assert capsys.readouterr().out.splitlines() == list_printed(block) != []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("package", "block"),
    [
        ("qdrant_client", QDRANT),
        ("lancedb", LANCEDB),
        ("bertopic", BERTOPIC),
        ("keybert", KEYBERT),
        ("mteb", MTEB),
    ],
)
def test_code_for_another_library_runs(package, block, tmp_path):
    """In a process of its own: some warn when they are imported, or where they are forked."""
    if find_spec(package) is None:
        pytest.skip(f"{package} isn't installed")
    run = [sys.executable, "-c", block]
    result = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == list_printed(block) != []
