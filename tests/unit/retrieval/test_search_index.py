"""The index of a corpus is made once, used while it holds, and never mistaken for another."""

import io
import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import build_sentence_model, save_small

from bertkit.base import storage
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    MissingExtraError,
    MissingFileError,
    ResumeError,
    SettingsError,
    StorageError,
)
from bertkit.base.extras import describe_install
from bertkit.base.files import write_file
from bertkit.base.output import open_output
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.data.tables.text_files import open_text_files
from bertkit.data.tables.texts import TextRow, TextTable
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.retrieval import index_folder as vectors
from bertkit.retrieval import search_index as build
from bertkit.retrieval.index_folder import RECORD_FILE, TEXTS_FILE, VECTORS_FILE, StoredCorpus
from bertkit.retrieval.search_index import SearchIndex
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.unfinished_vectors import ResumeState, UnfinishedVectors, record_path
from bertkit.retrieval.vector_file import VectorsFingerprint
from bertkit.retrieval.vector_index import VectorIndex

TEXTS = ["the cat saw a dog .", "", "a hat", "zèbre", "the dog lost the hat", "a hat"]


@pytest.fixture(scope="module")
def other_model(tmp_path_factory):
    """A sentence-transformers folder with prompts and a measure of its own."""
    folder = tmp_path_factory.mktemp("models") / "other"
    save_small(folder)
    torch.manual_seed(1)
    sentences = build_sentence_model(torch.nn.Linear(8, 5))
    sentences.prompts["passage"] = "the "
    write_sentence_model(folder, sentences)
    return folder


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


@pytest.fixture
def folder(corpus):
    """Where its index is to be."""
    return corpus.with_name("passages.jsonl.bertkit")


def as_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def made(monkeypatch):
    """How often vectors of a corpus were asked for."""
    calls, embed = [], build.embed

    def count(*arguments, **options):
        calls.append(arguments)
        return embed(*arguments, **options)

    monkeypatch.setattr(build, "embed", count)
    return calls


def open_index(model, corpus, **choices):
    folder = choices.pop("index_folder", None)
    settings = SearchSettings(**{"engine": "torch", **choices})
    return SearchIndex.open(model, corpus, settings, index_folder=folder)


def test_texts_are_found_in_order(model, corpus, made, capsys):
    index = open_index(model, corpus)
    told = (
        f"{corpus}: 5 texts embedded (1 empty row left out, 1 unknown only); 1 of 16 tokens (6.2 %)"
        " is not in the vocabulary and is read as [UNK]\n"
    )
    assert capsys.readouterr().err.endswith(told)
    hits = index.search("a hat", top_k=10)
    assert [(hit.row, hit.text) for hit in hits[:2]] == [(2, "a hat"), (5, "a hat")]
    assert hits[0].score == close(1, "float32")
    assert sorted(hit.row for hit in hits) == [0, 2, 3, 4, 5]
    assert [hit.text for hit in hits] == [TEXTS[hit.row] for hit in hits]
    embedder = Embedder.load(model)
    expected = embedder([text for text in TEXTS if text])
    assert_close(np.array(index.vectors.vectors), expected)
    assert index.record.counts["texts"] == 5
    assert index.record.counts["empty"] == 0
    found = index.search(["the cat saw a dog .", "a hat"], top_k=1)
    assert [[hit.row for hit in hits] for hits in found] == [[0], [2]]
    assert index.search([]) == []
    assert len(made) == 1


def test_files_of_a_folder_are_one_corpus(model, tmp_path, made, capsys):
    docs = tmp_path / "docs"
    (docs / "more").mkdir(parents=True)
    (docs / "a.txt").write_text("the cat\n\n\na hat\n")
    (docs / "more" / "b.jsonl").write_text('{"text": ""}\n{"text": "the dog lost"}\n')
    (docs / "picture.png").write_bytes(b"\x89PNG")
    (docs / "program").write_bytes(bytes(range(256)) * 9)
    found = [("docs/a.txt:1", 0), ("docs/a.txt:4", 3), ("docs/more/b.jsonl:2", 5)]
    index = open_index(model, docs)
    assert sorted((hit.id, hit.row) for hit in index.search("the dog lost", 9)) == found
    assert index.search("the dog lost", 1)[0].text == "the dog lost"
    told = capsys.readouterr().err
    assert "picture.png isn't text: make text of it first" in told
    assert "left out: docs/program isn't text" in told
    how = "one text per line, 3 empty rows left out"
    assert f"{docs}: 3 texts embedded ({how})\n" in told
    assert (tmp_path / "docs.bertkit" / RECORD_FILE).exists()
    open_index(model, f"{docs}/")  # the same folder
    (docs / "a.txt").touch()
    assert open_index(model, docs).record == index.record
    assert len(made) == 1
    (docs / "a.txt").rename(docs / "c.txt")
    assert [hit.id for hit in open_index(model, docs).search("a hat", 1)] == ["docs/c.txt:4"]
    assert len(made) == 2


def test_several_files_are_one_corpus(model, tmp_path, made):
    docs = tmp_path / "docs"
    (docs / "more").mkdir(parents=True)
    (docs / "c.txt").write_text("the cat\n\n\na hat\n")
    (docs / "more" / "b.jsonl").write_text('{"text": "the dog lost"}\n')
    several = open_index(model, [docs / "more" / "b.jsonl", docs / "c.txt"])
    assert [(hit.id, hit.row) for hit in several.search("a hat", 1)] == [("docs/c.txt:4", 4)]
    assert open_index(model, f"{docs}/**/*.txt").search("a hat", 9)[0].row == 3
    assert len(list(docs.glob("texts-*.bertkit"))) == 2
    assert open_index(model, docs).record.num_rows == 3  # indexes in it are no texts
    assert len(made) == 3


def test_texts_are_known_by_their_ids(model, tmp_path, made):
    path = tmp_path / "faq.csv"
    path.write_text("number,answer\nQ7,a hat\nQ8,\nQ9,the cat saw a dog\n")
    hits = open_index(model, path, id_column="number").search("the cat saw a dog", 5)
    assert [(hit.id, hit.row) for hit in hits] == [("Q9", 2), ("Q7", 0)]
    assert open_index(model, path, text_column="answer").search("a hat", 1)[0].id is None
    assert len(made) == 2
    with pytest.raises(InputError, match=r"has no column no; name with --id-column one of number"):
        open_index(model, path, id_column="no")


def test_an_index_of_an_older_version_is_made_again(model, corpus, folder, made, capsys):
    record = open_index(model, corpus).record
    files = {name: one for name, one in record.files.items() if name != "rows.npy"}
    record.model_copy(update={"files": files}).save(folder / RECORD_FILE)
    assert open_index(model, corpus).search("a hat", 1)[0].row == 2
    assert f"{corpus} has an older index; embedding it again" in capsys.readouterr().err
    assert len(made) == 2


def test_the_index_is_used_again_until_the_corpus_changes(model, corpus, made, capsys):
    first = open_index(model, corpus)
    second = open_index(model, corpus)
    assert second.record == first.record
    text = corpus.read_text()
    corpus.unlink()
    corpus.write_text(text)  # another date, the same content
    assert open_index(model, corpus).record == first.record
    assert len(made) == 1
    assert "changed since" not in capsys.readouterr().err
    corpus.write_text(text.replace("a hat", "a cat"))  # as long as before
    third = open_index(model, corpus)
    assert third.search("a cat", top_k=1)[0].text == "a cat"
    assert f"{corpus} changed since it was embedded" in capsys.readouterr().err
    assert len(made) == 2


def test_vectors_of_another_model_are_refused(model, other_model, corpus, made):
    open_index(model, corpus)
    message = r"has vectors of small, which differ from those of other \(.*overwrite"
    with pytest.raises(SettingsError, match=message):
        open_index(other_model, corpus)
    with pytest.raises(SettingsError, match=r"max_length: 24 → 9"):
        open_index(model, corpus, max_length=9)
    assert len(made) == 1
    assert open_index(other_model, corpus, overwrite=True).vectors.dimension == 5
    assert len(made) == 2
    with pytest.raises(SettingsError, match="other, which differ from those of small"):
        open_index(model, corpus)
    assert open_index(model, corpus, index_folder=corpus.parent / "more").vectors.dimension == 8


def test_an_index_is_of_the_same_model_whatever_the_name_in_its_record(model, corpus, folder, made):
    record = open_index(model, corpus).record
    renamed = record.model_copy(update={"embedding": record.embedding | {"model": "before"}})
    renamed.save(folder / RECORD_FILE)
    assert open_index(model, corpus).search("a hat", 1)[0].row == 2
    assert len(made) == 1
    message = r"of small with other settings \(max_length: 24 → 7\); use the earlier settings,"
    with pytest.raises(SettingsError, match=message):
        open_index(model, corpus, max_length=7)


def test_an_index_keeps_its_precision_until_another_is_asked_for(model, corpus, made, capsys):
    first = open_index(model, corpus, precision="bf16")
    assert "as the index was made" not in capsys.readouterr().err
    again = open_index(model, corpus)
    assert "precision bf16, as the index was made\n" in capsys.readouterr().err
    assert (again.record, again.embedder.engine.precision) == (first.record, "bf16")
    with pytest.raises(SettingsError, match=r'precision: "bf16" → "fp32".*overwrite'):
        open_index(model, corpus, precision="fp32")
    corpus.write_text('{"text": "a cat"}\n')
    assert open_index(model, corpus).record.embedding["precision"] == "bf16"
    rebuilt = open_index(model, corpus, precision="fp32", overwrite=True)
    assert rebuilt.record.embedding["precision"] == "fp32"


def test_an_interrupted_index_is_finished_in_its_precision(model, corpus, monkeypatch):
    with monkeypatch.context() as patches:
        patches.setattr(build, "embed", embed_half)
        with pytest.raises(ZeroDivisionError):
            open_index(model, corpus, precision="bf16")
    assert open_index(model, corpus).record.embedding["precision"] == "bf16"


def embed_half(model, source, output, settings, **options):
    """Leave the record of an interrupted job."""
    embedder = Embedder.load(model, settings)
    beginning = VectorsFingerprint(embedding=embedder.identity, input=source.identity())
    with UnfinishedVectors.open(output, beginning, embedder.dimension) as unfinished:
        unfinished.append(embedder(TEXTS[:1]), [TextRow(TEXTS[0], 1)], {})
        raise ZeroDivisionError


@pytest.mark.parametrize("recorded", ["torch", "onnx"])
def test_engines_share_an_index(model, corpus, folder, made, recorded):
    made_here = open_index(model, corpus, precision="fp32").record
    older = {**made_here.embedding, "engine": recorded}  # as earlier versions recorded it
    made_here.model_copy(update={"embedding": older}).save(folder / RECORD_FILE)
    for engine in ("torch", "onnx"):
        index = open_index(model, corpus, engine=engine)
        assert index.embedder.engine.name == engine
        assert index.search("a hat", top_k=1)[0].row == 2
    assert len(made) == 1


def test_prompts_and_measure_are_the_model_s_own(other_model, corpus):
    index = open_index(other_model, corpus)
    assert index.embedder.text_encoder.prompt == "seek: "
    assert index.record.embedding["prompt"] == "the "
    assert index.vectors.similarity == "cosine"
    chosen = open_index(other_model, corpus, prompt="a ", similarity="manhattan")
    assert chosen.embedder.text_encoder.prompt == "a "
    assert chosen.record == index.record
    assert chosen.vectors.similarity == "manhattan"
    assert chosen.search("hat")[0].score < 0
    named = open_index(other_model, corpus, prompt_name="passage")
    assert named.embedder.text_encoder.prompt == "the "
    with pytest.raises(SettingsError, match='prompt: "the " → ""'):
        open_index(other_model, corpus, passage_prompt="")
    with pytest.raises(SettingsError, match="exclude each other"):
        open_index(other_model, corpus, prompt="a", prompt_name="query")
    with pytest.raises(SettingsError, match=r"no prompt 'ask'; it has query, passage"):
        open_index(other_model, corpus, prompt_name="ask")


def test_an_approximate_index_is_kept_and_used(model, corpus, made, monkeypatch):
    pytest.importorskip("faiss")
    corpus.write_text(
        "".join(json.dumps({"text": f"{a} {b}"}) + "\n" for a in TEXTS for b in TEXTS)
    )
    exact = open_index(model, corpus)
    assert exact.vectors.cells is None
    approximate = open_index(model, corpus, index="approximate")
    assert approximate.search("a hat a hat", 3) == exact.search("a hat a hat", 3)
    assert approximate.record.cells.recall == approximate.vectors.cells.recall
    monkeypatch.setattr(VectorIndex, "approximate", None)  # its cells are there
    again = open_index(model, corpus, index="approximate")
    assert again.record == approximate.record
    assert again.search("a hat a hat", 3) == exact.search("a hat a hat", 3)
    assert open_index(model, corpus).vectors.cells is None
    monkeypatch.setattr(vectors, "ROWS_SEARCHED_EXACTLY", 10)
    assert open_index(model, corpus).vectors.cells is not None
    assert open_index(model, corpus, similarity="manhattan").vectors.cells is None
    monkeypatch.undo()
    euclidean = open_index(model, corpus, index="approximate", similarity="euclidean")
    assert euclidean.record.cells.similarity == "euclidean"


@pytest.mark.parametrize("name", [VECTORS_FILE, TEXTS_FILE, "text_ends.npy", "cells/codes.npy"])
def test_what_was_altered_is_noticed(model, corpus, folder, name):
    pytest.importorskip("faiss")
    open_index(model, corpus, index="approximate")
    content = bytearray((folder / name).read_bytes())
    content[-3] ^= 4
    (folder / name).write_bytes(content)
    with pytest.raises(DamagedFileError, match=f"{name} is damaged between bytes 0 and"):
        open_index(model, corpus, index="approximate").search("a hat", 6)
    (folder / name).write_bytes(content[:-1])
    with pytest.raises(DamagedFileError, match=f"{name} has .* bytes and was written with"):
        open_index(model, corpus, index="approximate").search("a hat", 6)
    (folder / name).unlink()
    with pytest.raises(MissingFileError, match=f"{name} is missing"):
        open_index(model, corpus, index="approximate").search("a hat", 6)


def test_an_open_index_stays_as_it_is_while_it_is_built_again(model, corpus):
    opened, unread = open_index(model, corpus), open_index(model, corpus)
    found = opened.search("a hat", 6)
    corpus.write_text("".join(json.dumps({"text": f"new {text}"}) + "\n" for text in TEXTS[::-1]))
    assert open_index(model, corpus).search("a hat", 1)[0].text.startswith("new")
    assert opened.search("a hat", 6) == unread.search("a hat", 6) == found


@pytest.mark.parametrize("name", [VECTORS_FILE, TEXTS_FILE, "text_ends.npy"])
def test_a_file_of_another_index_of_the_same_size_is_noticed(model, corpus, tmp_path, name):
    other = tmp_path / "other.jsonl"
    texts = [text.replace("hat", "dog") for text in (*TEXTS[1:], TEXTS[0])]
    other.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    folders = [path.with_name(path.name + ".bertkit") for path in (corpus, other)]
    for path in (corpus, other):
        open_index(model, path)
    ours, theirs = (folder / name for folder in folders)
    assert ours.stat().st_size == theirs.stat().st_size
    shutil.copy(theirs, ours)
    with pytest.raises(DamagedFileError, match=f"{name} is damaged .*overwrite"):
        open_index(model, corpus).search("a hat", 6)
    found = open_index(model, corpus, overwrite=True).search("a hat", 6)
    assert [hit.text for hit in found][:2] == ["a hat", "a hat"]
    shutil.copy(folders[1] / RECORD_FILE, folders[0])  # that of another corpus: made anew
    assert open_index(model, corpus).search("a hat", 6) == found


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (VECTORS_FILE, b"PK\x03\x04" + bytes(64), r"isn't an array \(.*"),
        (VECTORS_FILE, b"\x80\x04.", r"isn't an array .*"),
        (VECTORS_FILE, as_npy(np.zeros((5, 8), [("a", "<f4")])), r"holds \[\('a', '<f4'\)\]"),
        (VECTORS_FILE, as_npy(np.zeros((5, 8))), "holds float64, and must hold float32"),
        ("text_ends.npy", as_npy(np.full(5, 2**63, np.uint64)), "has no text of row"),
        ("text_ends.npy", as_npy(np.arange(5, 0, -1).astype(np.uint64)), "has no text"),
        (TEXTS_FILE, b"\xff" * 60, "isn't UTF-8 in row"),
    ],
)
def test_what_was_sealed_by_somebody_else_ends_in_a_message(
    model, corpus, folder, name, content, message
):
    index = open_index(model, corpus)
    files = {**index.record.files, name: write_file(folder / name, content)}
    index.record.model_copy(update={"files": files}).save(folder / RECORD_FILE)
    with pytest.raises(DamagedFileError, match=rf"{name.split('_')[0]}.* {message}.*overwrite"):
        open_index(model, corpus).search("a hat", 6)


def test_a_process_killed_among_cells_harms_no_vectors(model, corpus, made, monkeypatch):
    pytest.importorskip("faiss")
    expected = open_index(model, corpus, index="approximate").search("a hat", 2)
    with monkeypatch.context() as patches:
        patches.setattr(vectors, "write_array", write_one_and_fail)
        with pytest.raises(ZeroDivisionError):
            open_index(model, corpus, index="approximate", similarity="dot")
    assert open_index(model, corpus, index="approximate").search("a hat", 2) == expected
    assert len(made) == 1


def write_one_and_fail(path, matrix):
    write_file(path, as_npy(matrix * 0))
    raise ZeroDivisionError


def test_cells_are_not_added_to_an_index_that_was_made_anew(model, corpus, monkeypatch):
    pytest.importorskip("faiss")
    open_index(model, corpus)
    hold = vectors.open_output

    def rebuild(folder, *arguments, **options):
        corpus.write_text('{"text": "a cat"}\n')
        open_index(model, corpus)
        return hold(folder, *arguments, **options)

    monkeypatch.setattr(vectors, "open_output", rebuild)
    with pytest.raises(ResumeError, match="was rebuilt meanwhile; run the command again"):
        open_index(model, corpus, index="approximate")
    monkeypatch.undo()
    assert open_index(model, corpus, index="approximate").search("cat")[0].text == "a cat"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("names", [{VECTORS_FILE}, {".lock", "run.json"}])
def test_a_folder_of_something_else_is_left(model, corpus, names, overwrite):
    others = corpus.parent / "others"
    others.mkdir()
    for name in names:
        (others / name).write_text("mine")
    with pytest.raises(SettingsError, match="holds other files, which the index could replace"):
        open_index(model, corpus, index_folder=others, overwrite=overwrite)
    assert {path.name: path.read_text() for path in others.iterdir()} == dict.fromkeys(
        names, "mine"
    )


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ('"num_rows": 5', '"num_rows": 6')])
def test_an_altered_record_is_noticed(model, corpus, folder, old, new):
    open_index(model, corpus)
    path = folder / RECORD_FILE
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DamagedFileError, match=r"SHA-256.*overwrite"):
        open_index(model, corpus)
    assert open_index(model, corpus, overwrite=True).search("a hat", 1)[0].row == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: {"num_rows": 4}, r"has the shape \(5, 8\), and must have"),
        (lambda record: {"corpus": None}, r"isn't the record of an index: corpus must be "),
        *(
            (
                lambda record, name=name: {
                    "files": {key: file for key, file in record.files.items() if key != name}
                },
                r"isn't the record of an index: files must list",
            )
            for name in (VECTORS_FILE, TEXTS_FILE, "text_ends.npy")
        ),
    ],
)
def test_a_record_that_does_not_fit_is_refused(model, corpus, folder, change, message):
    record = open_index(model, corpus).record
    path = folder / RECORD_FILE
    record.model_copy(update=change(record)).save(path)
    with pytest.raises(DamagedFileError, match=message):
        open_index(model, corpus)


def test_a_corpus_that_cannot_be_searched_is_refused(model, tmp_path):
    with pytest.raises(MissingFileError, match=r"passages\.txt doesn't exist"):
        open_index(model, tmp_path / "passages.txt")
    with pytest.raises(MissingFileError, match="has no file"):
        open_index(model, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="must be a regular file"):
        open_index(model, tmp_path / "pipe")
    with pytest.raises(InputError, match=r"has no file of texts: .*pipe is a pipe or a device"):
        open_index(model, tmp_path)
    (tmp_path / "passages.txt").touch()
    with pytest.raises(InputError, match="has no texts"):
        open_index(model, tmp_path / "passages.txt")


def test_what_cannot_be_approximate_is_told_before_anything_is_embedded(
    model, corpus, made, monkeypatch
):
    with pytest.raises(SettingsError, match="doesn't support manhattan"):
        open_index(model, corpus, index="approximate", similarity="manhattan")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install("search"))):
        open_index(model, corpus, index="approximate")
    assert made == []


def test_a_query_must_say_something(model, corpus):
    index = open_index(model, corpus)
    with pytest.raises(InputError, match="query 2 is empty"):
        index.search(["a", " "])
    with pytest.raises(InputError, match="expected a text, got None"):
        index.search(["a", None])


def test_one_process_makes_an_index(model, corpus, folder):
    message = "building the index .*; wait for it, or name another `index_folder`"
    with open_output(folder, "x", is_workplace=True), pytest.raises(ResumeError, match=message):
        open_index(model, corpus)


def test_a_corpus_that_changes_meanwhile_makes_no_index(model, corpus, monkeypatch):
    write_numbers = StoredCorpus.write_numbers

    def change(stored):
        corpus.write_text('{"text": "a"}\n')
        return write_numbers(stored)

    monkeypatch.setattr(StoredCorpus, "write_numbers", change)
    with pytest.raises(ResumeError, match="changed while it was read; run the command again"):
        open_index(model, corpus)
    monkeypatch.undo()
    assert open_index(model, corpus).search("a", 9)[0].text == "a"


@pytest.mark.parametrize(
    "error",
    [MissingFileError("passages.jsonl doesn't exist"), DamagedFileError("a.bin; download it")],
)
def test_a_missing_text_or_damaged_model_is_no_reason_to_remove_an_index(
    model, corpus, monkeypatch, error
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(build, "embed", fail)
    with pytest.raises(type(error), match=f"^{error}$"):
        open_index(model, corpus)


def test_what_was_begun_goes_on_and_what_was_damaged_says_how(
    model, other_model, corpus, folder, monkeypatch
):
    monkeypatch.setattr(StoredCorpus, "write_numbers", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_index(model, corpus)
    assert (folder / VECTORS_FILE).exists()
    assert not (folder / RECORD_FILE).exists()
    monkeypatch.undo()
    (folder / "vectors.npy.unfinished.json").write_text("{}")
    with pytest.raises(DamagedFileError, match=f"remove {folder} to start over"):
        open_index(model, corpus)
    shutil.rmtree(folder)
    assert open_index(model, corpus).search("a hat", 1)[0].row == 2


def test_what_another_model_began_is_refused_too(model, other_model, corpus, folder, made):
    output = folder / VECTORS_FILE
    embedding = open_index(model, corpus).record.embedding

    def leave_unfinished():
        """As a process that was killed leaves it."""
        output.with_name(RECORD_FILE).unlink()
        output.unlink()
        identity = open_text_files(corpus, skips_blank=True).identity()
        beginning = VectorsFingerprint(embedding=embedding, input=identity)
        ResumeState(beginning=beginning).save(record_path(output))

    leave_unfinished()
    with pytest.raises(SettingsError, match=r"which differ from those of other .*overwrite"):
        open_index(other_model, corpus)
    assert open_index(model, corpus).search("a hat", 1)[0].row == 2
    leave_unfinished()
    corpus.write_text('{"text": "a cat"}\n')
    assert open_index(model, corpus).search("a hat", 1)[0].text == "a cat"
    leave_unfinished()
    assert open_index(other_model, corpus, overwrite=True).vectors.dimension == 5
    assert len(made) == 4


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_corpus_is_parsed_once_in_a_call(model, corpus, monkeypatch, is_stopped):
    """Its texts are stored as they are embedded, also by a call that resumes."""
    if is_stopped:
        with monkeypatch.context() as patches:
            patches.setattr(build, "embed", embed_half)
            with pytest.raises(ZeroDivisionError):
                open_index(model, corpus)
    read, rows = [], TextTable.rows
    monkeypatch.setattr(TextTable, "rows", lambda table: read.append(table.name) or rows(table))
    assert open_index(model, corpus).search("a hat", 1)[0].row == 2
    assert read == [str(corpus)]


def test_a_full_disk_leaves_the_old_index_or_none(model, corpus, monkeypatch):
    open_index(model, corpus)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    corpus.write_text('{"text": "a cat"}\n')
    monkeypatch.setattr(storage, "write", refuse)
    with pytest.raises(StorageError, match="No space left"):
        open_index(model, corpus)
    monkeypatch.undo()
    assert [hit.text for hit in open_index(model, corpus).search("a cat")] == ["a cat"]
