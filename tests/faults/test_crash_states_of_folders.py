"""A power cut while a folder is replaced, shards are prepared, or texts are embedded."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.faults.disk import PAGE_BYTES, Operation, Recorder, Tree, check_states, read_tree
from tests.faults.watch import WINDOW_TEXTS
from tests.letters import letters_tokenizer, prepare_corpus, write_letters
from tests.unit.inference.small import WORDS

from bertkit.base.errors import BertkitError
from bertkit.base.files import durable_folder, write_file
from bertkit.base.output import LOCK_FILE
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.inference import stream
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.pipeline import Window
from bertkit.inference.stream import TextCounts
from bertkit.recipes.prepare import plan
from bertkit.retrieval import unfinished_vectors
from bertkit.retrieval.embed import embed

OLD, NEW = ({"a": content * PAGE_BYTES, "b": content} for content in (b"old", b"new"))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    with monkeypatch.context() as patches:
        yield Recorder(patches)


def find_names(operations: list[Operation], path: Path) -> list[int]:
    """How many operations were done when `path` had been given its name and that was safe."""
    renamed = [
        number
        for number, operation in enumerate(operations)
        if operation.name == "rename" and operation.arguments[1] == path
    ]
    return [
        next(
            number + 1
            for number, operation in enumerate(operations)
            if number > start and operation == Operation("sync_folder", (path.parent,))
        )
        for start in renamed
    ]


def write_folder(target: Path, content: dict[str, bytes]) -> None:
    with durable_folder(target) as folder:
        for name, data in content.items():
            write_file(folder / name, data)


def test_a_folder_that_is_replaced_is_the_old_one_or_the_new_one(root, recorder):
    target = root / "target"
    write_folder(target, OLD)
    write_folder(target, NEW)
    old_at, new_at = find_names(recorder.operations, target)

    def check(num_done: int, _: Tree, found: Path) -> Tree:
        with pytest.raises(InterruptedError), durable_folder(found / "target"):
            raise InterruptedError  # the next call puts back, and fails
        now = read_tree(found)
        write_folder(found / "target", NEW)
        assert read_tree(found) == {"target": NEW}
        assert now in [{}, {"target": OLD}, {"target": NEW}, {"target": NEW, **aside(now)}]
        assert now or num_done < old_at
        assert num_done < new_at or now["target"] == NEW
        return now

    def promise(number: int) -> int:
        return (number >= old_at) + (number >= new_at)

    seen = check_states([*recorder.operations], root, check, promise)
    assert {"target": OLD} in seen
    assert {"target": NEW} in seen


def aside(tree: dict) -> dict:
    """The old folder beside the new one, whole or not; writing removes it in the end."""
    return {name: tree[name] for name in tree if name.startswith("target.replaced")}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)
    write_letters(tmp_path / "corpus", "ab", 40)
    letters_tokenizer().save(tmp_path / "tokenizer")
    return tmp_path / "corpus"


def prepare_again(corpus: Path, output: Path) -> dict:
    prepare_corpus(corpus, output)
    tree = read_tree(output)
    tree.pop(LOCK_FILE, None)
    return tree


def check_shards(corpus: Path, root: Path, recorder: Recorder) -> int:
    """Prepare shards, and again on all that power cuts may leave; returns how many that are."""
    expected = prepare_again(corpus, root / "shards")
    (written_at,) = find_names(recorder.operations, root / "shards" / MANIFEST)

    def check(num_done: int, _: Tree, found: Path) -> None:
        is_whole = (found / "shards" / MANIFEST).exists()
        assert is_whole or num_done < written_at
        if is_whole:
            ShardSet.open(found / "shards", verify="all")
        assert prepare_again(corpus, found / "shards") == expected

    operations = [*recorder.operations]
    return len(check_states(operations, root, check, lambda number: number >= written_at))


def test_after_any_power_cut_shards_are_whole_or_prepared_again(root, corpus, recorder):
    assert check_shards(corpus, root, recorder) > 100


NUM_TEXTS = 21
DIMENSION = PAGE_BYTES // 8  # a page has two rows of float32


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(stream, "WINDOW_TEXTS", WINDOW_TEXTS)
    monkeypatch.setattr(unfinished_vectors, "SAVE_SECONDS", 0.0)
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


def find_bad_states(texts: Path, root: Path, form: str, bug: Any = None) -> list[str]:
    """Cut the power after every operation, and embed again on all that may then be found."""
    with pytest.MonkeyPatch.context() as patches:
        stand_in_for_the_model(patches)
        recorder = Recorder(patches)
        if bug is not None:
            bug(patches)
        embed("none", texts, root / f"v.{form}")
    operations = [
        operation
        for operation in recorder.operations
        if not str(operation.arguments[0]).endswith(".lock")
    ]
    expected = drop_lock(read_tree(root))

    def check(num_done: int, tree: Tree, found: Path) -> str:
        try:
            result = embed("none", texts, found / f"v.{form}")
        except BertkitError as error:
            return f"after {num_done}: {error}"
        is_same = asdict(result.counts)["texts"] == NUM_TEXTS and read_tree(found) == expected
        return "" if is_same else f"after {num_done}: {sorted(tree)}"

    with pytest.MonkeyPatch.context() as patches:
        stand_in_for_the_model(patches)
        return list(filter(None, check_states(operations, root, check)))


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_a_power_cut_anywhere_leaves_what_can_be_gone_on_with(texts, root, form):
    assert find_bad_states(texts, root, form) == []
