"""The same command gives the same bytes each time, on an idle machine and on a busy one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.exhaustive import mark_all_but
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier

from bertkit.cli.main import main

NUM_RUNS = 10
SPIN = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"
TEXTS = ["the cat saw a hat .", "dogs", "", "a dog lost the cat ." * 3, "zebra the", "a hat"]


@contextmanager
def busy() -> Iterator[None]:
    """Keep a core busy, for five minutes at most."""
    loop = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        yield
        assert loop.poll() is None  # it was there to the end
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize(
    "command", mark_all_but(["embed"], ["embed", "search", "classify", "score"])
)
def test_a_busy_machine_gives_the_same_bytes(tmp_path, capfdbinary, command):
    save_small(tmp_path / "small")
    save_classifier(tmp_path / "classifier")
    texts, output = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    texts.write_text("".join(f"{text}\n" for text in TEXTS if text or command == "embed"))
    lines = {
        "embed": f"embed {texts} --model {tmp_path}/small --output {output}",
        "search": f"search cats --model {tmp_path}/small --corpus {texts} --json",
        "classify": f"classify {tmp_path}/classifier --file {texts} --json",
        "score": f"score --model {tmp_path}/small --file {texts} --json",
    }

    def run() -> bytes:
        """The vectors that the command writes, or what it prints; search keeps its index."""
        for written in tmp_path.glob(f"{output.name}*"):
            written.unlink()
        assert main(lines[command].split()) == 0
        printed = capfdbinary.readouterr().out
        return output.read_bytes() if command == "embed" else printed

    idle = run()
    assert idle
    with busy():
        for _ in range(NUM_RUNS):
            assert run() == idle
