"""What a function loaded stays for its next call, and no longer than its files stay as they are."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.unit.inference.small import save_small

import bertkit
from bertkit.inference.kept import LAST_LOADED, LastLoaded
from bertkit.inference.loading import LoadedModel
from bertkit.retrieval.embed import embed_files
from bertkit.retrieval.settings import EmbedSettings

TEXTS = ["the hat", "a cat lost the hat", "dogs"]


@pytest.fixture
def model(tmp_path):
    save_small(tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture
def loads(monkeypatch):
    """The folders of the models that are loaded, in their order."""
    found: list[str] = []
    usual = LoadedModel.of.__func__

    def count(cls, opened):
        found.append(opened.folder.name)
        return usual(cls, opened)

    monkeypatch.setattr(LoadedModel, "of", classmethod(count))
    return found


def test_the_second_call_loads_nothing(model, loads):
    first = bertkit.embed(TEXTS, model=model)
    np.testing.assert_array_equal(bertkit.embed(TEXTS, model=str(model)), first)
    bertkit.search("the cat", TEXTS, model=model)
    assert loads == ["small"]


def test_another_setting_or_device_loads_again(model, loads):
    bertkit.embed(TEXTS, model=model)
    bertkit.embed(TEXTS, model=model, pooling=("cls",))
    bertkit.embed(TEXTS, model=model, pooling=("cls",), device="cpu")
    assert loads == ["small"] * 3


def test_a_changed_folder_is_loaded_again(model, loads):
    first = bertkit.embed(TEXTS, model=model)
    save_small(model, initializer_range=0.7)
    changed = bertkit.embed(TEXTS, model=model)
    assert not np.array_equal(changed, first)
    np.testing.assert_array_equal(changed, bertkit.Embedder.load(model)(TEXTS))


def test_content_of_the_same_size_in_the_same_file_is_loaded_again(tmp_path):
    path = tmp_path / "weights"
    path.write_text("old")
    kept, before = LastLoaded(), path.stat()
    assert kept.take(Path.read_text, [path]) == "old"
    with path.open("r+") as stream:
        stream.write("new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    assert path.stat().st_ino == before.st_ino
    assert kept.take(Path.read_text, [path]) == "new"


def test_only_the_last_model_of_a_kind_is_kept(model, loads, tmp_path):
    save_small(tmp_path / "other")
    for folder in (model, tmp_path / "other", model):
        bertkit.embed(TEXTS, model=folder)
    assert loads == ["small", "other", "small"]


def test_the_model_of_an_index_stays_though_its_corpus_changes(model, loads, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the hat\na dog\n")
    call = {"model": model, "top_k": 1}
    bertkit.search("the hat", corpus, **call)
    num_first = len(loads)
    corpus.write_text("the hat\na cat saw a dog\n")
    assert bertkit.search("a cat saw a dog", corpus, **call)[0].text == "a cat saw a dog"
    assert len(loads) == num_first


def test_a_predictor_stays_too(model, loads, tmp_path):
    rows = [("the cat", "x"), ("a dog", "y")] * 8
    bertkit.finetune(
        "classify", model=model, train=rows, output=tmp_path / "m", epochs=1, max_length=12
    )
    loads.clear()
    first = bertkit.predict(tmp_path / "m", TEXTS)
    assert bertkit.predict(tmp_path / "m", TEXTS) == first
    assert loads == ["m"]


def test_threads_load_once(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    kept, calls, together = LastLoaded(), [], threading.Barrier(4)

    def load(path):
        calls.append(path)
        return object()

    def call():
        together.wait(timeout=30)
        kept.take(load, [folder])

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert calls == [folder]


def test_a_failure_keeps_nothing(tmp_path):
    kept = LastLoaded()

    def fail(path):
        raise bertkit.BertkitError("no")

    for _ in range(2):
        with pytest.raises(bertkit.BertkitError, match="no"):
            kept.take(fail, [tmp_path])
    assert kept.take(str, [tmp_path]) == str(tmp_path)


def test_the_files_of_a_prefix_are_those_of_its_folder(tmp_path):
    """As of a TensorFlow checkpoint."""
    kept, weights = LastLoaded(), tmp_path / "bert.ckpt.index"
    weights.write_bytes(b"1")
    prefix = tmp_path / "bert.ckpt"

    def load(path):
        return weights.read_bytes()

    assert kept.take(load, [prefix]) is kept.take(load, [prefix])
    weights.write_bytes(b"22")
    assert kept.take(load, [prefix]) == b"22"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_keeps_the_model_but_no_lock(tmp_path):
    """A thread that the child doesn't have loads another meanwhile."""
    is_loading, may_go_on = threading.Event(), threading.Event()

    def load(path):
        return [path]

    def load_slowly(path):
        is_loading.set()
        assert may_go_on.wait(60)

    kept = LAST_LOADED.take(load, [tmp_path])
    other = threading.Thread(target=LAST_LOADED.take, args=(load_slowly, [tmp_path]))
    other.start()
    assert is_loading.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if LAST_LOADED.take(load, [tmp_path]) is kept else 1)
    may_go_on.set()
    other.join(60)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_files_load_a_model_once(model, loads, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("the hat\n")
    inputs, settings = [str(tmp_path / "?.txt")], EmbedSettings(device="cpu")
    assert embed_files(model, inputs, tmp_path / "vectors", settings).num_made == 2
    assert loads == ["small"]
