"""The power is cut wherever `embed` touches the disk: the same bytes come out."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.faults.command_child import WINDOW_TEXTS
from tests.faults.disk import PAGE_BYTES, Recorder, Tree, list_outcomes, read_tree, write_tree
from tests.unit.inference.small import WORDS

from bertkit.base import storage
from bertkit.base.errors import BertkitError
from bertkit.inference import stream
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.pipeline import Window
from bertkit.inference.stream import TextCounts
from bertkit.retrieval import vector_file
from bertkit.retrieval.embed import embed
from bertkit.retrieval.vector_file import UnfinishedVectors, record_path

NUM_TEXTS = 21
DIMENSION = PAGE_BYTES // 8  # a page has two rows of float32


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", WINDOW_TEXTS)
    monkeypatch.setattr(vector_file, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def texts(tmp_path):
    choose = random.Random(0)
    lines = [" ".join(choose.choices(WORDS, k=5)) for _ in range(NUM_TEXTS)]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(lines))
    return path


def drop_lock(tree: Tree) -> Tree:
    """A killed process leaves its lock, which is empty and which nobody holds."""
    return {name: node for name, node in tree.items() if not name.endswith(".lock")}


def stand_in_for_the_model(patches: pytest.MonkeyPatch) -> None:
    """An embedder of pages of vectors that needs no model."""

    def stream_rows(texts: Iterable[str], counts: TextCounts) -> Iterator[Window]:
        for window in stream.cut_windows(texts):
            counts.add(TextCounts(texts=len(window), tokens=len(window)))
            seeds = [sum(text.encode()) for text in window]
            rows = [np.random.default_rng(seed).random(DIMENSION, np.float32) for seed in seeds]
            yield Window(None, np.stack(rows))

    embedder = SimpleNamespace(
        dimension=DIMENSION,
        identity={"model": "none"},
        engine=SimpleNamespace(name="none", precision="fp32"),
        text_encoder=SimpleNamespace(max_length=8),
        read=iter,
        stream_windows=stream_rows,
    )
    patches.setattr(Embedder, "load", lambda *arguments, **options: embedder)


def find_bad_states(texts: Path, tmp_path: Path, form: str, bug: Any = None) -> list[str]:
    """Cut the power after every operation, and embed again on all that may then be found."""
    disk, problems = tmp_path / "disk", []
    disk.mkdir()
    with pytest.MonkeyPatch.context() as patches:
        stand_in_for_the_model(patches)
        recorder = Recorder(patches)
        if bug is not None:
            bug(patches)
        embed("none", texts, disk / f"v.{form}")
    operations = [
        operation
        for operation in recorder.operations
        if not str(operation.arguments[0]).endswith(".lock")
    ]
    expected = drop_lock(read_tree(disk))
    with pytest.MonkeyPatch.context() as patches:
        stand_in_for_the_model(patches)
        for number, (num_done, tree) in enumerate(
            list_outcomes(operations, disk, promise=lambda num_done: None)
        ):
            output = tmp_path / "states" / str(number) / f"v.{form}"
            output.parent.parent.mkdir(exist_ok=True)
            write_tree(tree, output.parent)
            try:
                result = embed("none", texts, output)
            except BertkitError as error:
                problems.append(f"after {num_done}: {error}")
                continue
            if asdict(result.counts)["texts"] != NUM_TEXTS or read_tree(output.parent) != expected:
                problems.append(f"after {num_done}: {sorted(tree)}")
    return problems


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_a_power_cut_anywhere_leaves_what_can_be_gone_on_with(texts, tmp_path, form):
    assert find_bad_states(texts, tmp_path, form) == []


def test_a_record_of_rows_that_are_not_safe_is_noticed(texts, tmp_path):
    def save_without_syncing(vectors: UnfinishedVectors) -> None:
        vectors.state.save(record_path(vectors.path.with_suffix("")))

    def bug(patches: pytest.MonkeyPatch) -> None:
        patches.setattr(UnfinishedVectors, "save", save_without_syncing)

    problems = find_bad_states(texts, tmp_path, "npy", bug)
    assert any("start over with --restart" in problem for problem in problems)


def test_a_header_that_is_not_safe_before_the_name_is_noticed(texts, tmp_path):
    def finish_without_syncing(vectors: UnfinishedVectors) -> None:
        vectors.save()
        storage.seek(vectors._opened(), 0)
        storage.write(vectors._opened(), vectors._header())
        vectors.close()

    def bug(patches: pytest.MonkeyPatch) -> None:
        patches.setattr(UnfinishedVectors, "finish", finish_without_syncing)

    assert find_bad_states(texts, tmp_path, "npy", bug)
