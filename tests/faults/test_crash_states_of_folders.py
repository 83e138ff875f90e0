"""A power cut while a folder is replaced, and while shards are prepared."""

import shutil
from pathlib import Path

import pytest
from tests.faults.disk import (
    PAGE_BYTES,
    Operation,
    Recorder,
    list_outcomes,
    read_tree,
    rename_before_syncing,
    write_tree,
)
from tests.letters import letters_tokenizer, write_letters

from bertkit.base.errors import BertkitError
from bertkit.base.files import durable_folder, write_file
from bertkit.base.output import LOCK_FILE
from bertkit.base.parts import WorkersSettings
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.recipes.prepare import plan
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings

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


def test_a_folder_that_is_replaced_is_the_old_one_or_the_new_one(tmp_path, root, recorder):
    target = root / "target"
    write_folder(target, OLD)
    write_folder(target, NEW)
    old_at, new_at = find_names(recorder.operations, target)
    operations, found = list(recorder.operations), tmp_path / "found"
    seen = []
    for num_done, tree in list_outcomes(
        operations, root, promise=lambda number: (number >= old_at) + (number >= new_at)
    ):
        write_tree(tree, found)
        with pytest.raises(InterruptedError), durable_folder(found / "target"):
            raise InterruptedError  # the next call puts back, and fails
        now = read_tree(found)
        write_folder(found / "target", NEW)
        assert read_tree(found) == {"target": NEW}
        assert now in [{}, {"target": OLD}, {"target": NEW}, {"target": NEW, **aside(now)}]
        assert now or num_done < old_at
        assert num_done < new_at or now["target"] == NEW
        shutil.rmtree(found)
        seen.append(now)
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
    settings = PrepareSettings(held_out=0.1)
    prepare(
        [str(corpus)],
        corpus.with_name("tokenizer"),
        output,
        settings,
        workers=WorkersSettings(workers=1),
    )
    tree = read_tree(output)
    tree.pop(LOCK_FILE, None)
    return tree


def check_states(corpus: Path, root: Path, recorder: Recorder) -> int:
    """Prepare shards, and again on all that power cuts may leave; returns how many that are."""
    expected = prepare_again(corpus, root / "shards")
    (written_at,) = find_names(recorder.operations, root / "shards" / MANIFEST)
    operations, found = list(recorder.operations), root.with_name("found")
    num_states = 0
    for num_done, tree in list_outcomes(
        operations, root, promise=lambda number: number >= written_at
    ):
        write_tree(tree, found)
        is_whole = (found / "shards" / MANIFEST).exists()
        assert is_whole or num_done < written_at
        if is_whole:
            ShardSet.open(found / "shards", verify="all")
        assert prepare_again(corpus, found / "shards") == expected
        shutil.rmtree(found)
        num_states += 1
    return num_states


def test_after_any_power_cut_shards_are_whole_or_prepared_again(root, corpus, recorder):
    assert check_states(corpus, root, recorder) > 100


def test_shards_that_are_named_before_they_are_synced_are_found(
    root, corpus, recorder, monkeypatch
):
    rename_before_syncing(monkeypatch)
    with pytest.raises((AssertionError, BertkitError)):
        check_states(corpus, root, recorder)
