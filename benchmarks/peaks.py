"""The most memory that a program and all that it begins have held, and generated work for them.

Linux only: peaks are read from /proc.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from generated_corpus import draw_sentences
from minilm import write_encoder
from program import run_bertkit

POLL_SECONDS = 0.05
LONGEST_TEXT_WORDS = 12
VOCABULARY_TEXTS, VOCABULARY_SIZE = 20_000, 4000
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def check_system() -> None:
    """End the program where peaks can't be read."""
    read_status("VmHWM")


def watch_bertkit(*words: object) -> dict[str, Any]:
    """Run a command of bertkit, and add up what its processes hold at most while it runs."""
    return watch("-m", "bertkit", *words)


def watch(*words: object) -> dict[str, Any]:
    """The same of any program of Python's.

    Raises:
        CalledProcessError: it failed; its own words are on standard error.
    """
    command = [sys.executable, *map(str, words)]
    started = time.monotonic()
    peak_bytes = num_processes = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peaks = [peak for number in list_family(process.pid) if (peak := peak_of(number))]
            peak_bytes = max(peak_bytes, sum(peaks))
            num_processes = max(num_processes, len(peaks))
            time.sleep(POLL_SECONDS)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {
        "peak_bytes": peak_bytes,
        "num_processes": num_processes,
        "seconds": time.monotonic() - started,
    }


def list_family(number: int) -> Iterator[int]:
    """A process and all its descendants, as far as they are still there."""
    yield number
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{number}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # it ended
        return
    for child in children:
        yield from list_family(child)


def peak_of(process: int) -> int:
    """Bytes that a process has held at most; 0 when it has ended, and holds no memory any more."""
    try:
        return find_bytes(Path(f"/proc/{process}/status").read_text(), "VmHWM") or 0
    except OSError:
        return 0


def read_status(name: str) -> int:
    """A row of this process's status, in bytes; where it is missing, the program ends."""
    path = Path("/proc/self/status")
    try:
        found = find_bytes(path.read_text(), name)
    except OSError as error:
        raise SystemExit(f"memory is read from {path}, which only Linux has: {error}") from None
    if found is None:
        raise SystemExit(f"{path} has no row {name}, from which memory is read; use another kernel")
    return found


def find_bytes(status: str, name: str) -> int | None:
    """A row of a status, in bytes; None where there is none."""
    rows = (line.split() for line in status.splitlines())
    return next((1024 * int(row[1]) for row in rows if row[:1] == [f"{name}:"]), None)


def write_texts(path: Path, num_texts: int) -> None:
    """A text of up to a dozen words a line, the same for the same number."""
    generator = np.random.default_rng(0)
    num_written = 0
    with path.open("w") as stream:
        while num_written < num_texts:
            sentences = draw_sentences(generator)[: num_texts - num_written]
            for sentence in sentences:
                stream.write(" ".join(sentence.split()[:LONGEST_TEXT_WORDS]) + "\n")
            num_written += len(sentences)


def make_model(folder: Path, texts: Path | None = None) -> Path:
    """A tiny encoder with random weights and a vocabulary of the texts, or of generated ones."""
    folder.mkdir()
    if texts is None:
        texts = folder / "vocabulary-texts.txt"
        write_texts(texts, VOCABULARY_TEXTS)
    tokenizer = folder / "tokenizer"
    run_bertkit("train-tokenizer", texts, "--vocab-size", VOCABULARY_SIZE, "--output", tokenizer)
    write_encoder(folder / "model", tokenizer, TINY)
    return folder / "model"
