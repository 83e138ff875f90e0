"""An index that is kept current: add, replace, update, delete, search."""

import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.closeness import assert_close

from bertkit.base.errors import BertkitError, InputError, MissingFileError, SettingsError
from bertkit.retrieval import index_search
from bertkit.retrieval.index import Index
from bertkit.retrieval.index_model import IndexModel
from bertkit.retrieval.index_writer import IndexWriter
from bertkit.retrieval.settings import IndexSettings, QuerySettings

DIMENSION = 64
TEXTS = ["take the wheel off", "boil the eggs", "paint the boat green"]


class WordModel:
    """Sums a vector for each word, and keeps what it embedded."""

    def __init__(self):
        self.embedded = []

    def embed(self, texts):
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for number, text in enumerate(texts):
            for word in text.lower().split():
                vectors[number, zlib.crc32(word.encode()) % DIMENSION] += 1
        return vectors

    def embed_passages(self, texts):
        self.embedded += texts
        return self.embed(texts)

    def as_model(self, name="words"):
        return IndexModel(
            identity={"model": name, "model_sha256": name, "dimension": DIMENSION},
            similarity="cosine",
            embed_passages=self.embed_passages,
            embed_queries=self.embed,
            measure=lambda text: len(text.split()),
            passage_tokens=20,
        )


@pytest.fixture
def words():
    return WordModel()


@pytest.fixture
def index(words, tmp_path):
    with Index(tmp_path / "x.bertkit", model=words.as_model()) as opened:
        yield opened


def list_ids(index):
    return [one.id for one in index.documents()]


def check_consistent(index):
    """Every passage has words and a vector, and nothing else has."""
    with index._open().reading() as connection:
        rows = [row for (row,) in connection.execute("SELECT row FROM passages ORDER BY row")]
        texts = connection.execute("SELECT text FROM passages ORDER BY row").fetchall()
        stored = index._vectors.read(connection, rows)
        assert connection.execute("SELECT count(*) FROM words").fetchone()[0] == len(rows)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert_close(stored, WordModel().embed([text.strip() for (text,) in texts]))
    hits = index.search("take boil paint", top_k=10_000, by="vectors") if rows else []
    assert len(hits) == len(rows)


def test_rows_are_added_replaced_found_and_deleted(index, words):
    frame = pd.DataFrame({"number": [1, 2, 3], "body": TEXTS, "year": [2019, 2020, 2021]})
    changes = index.add(frame, id="number", text="body")
    assert (changes.added, changes.passages, changes.embedded) == (3, 3, 3)
    assert index.add(frame, id="number", text="body").unchanged == 3
    changes = index.add(
        [{"number": 2, "body": "cook the rice", "year": 2022}], id="number", text="body"
    )
    assert (changes.added, changes.replaced, changes.embedded) == (0, 1, 1)
    assert index.get("2").text == "cook the rice"
    assert index.get("2").fields == {"year": 2022}
    assert index.get("4") is None
    [hit] = index.search("cook rice", top_k=1)
    assert (hit.id, hit.text, hit.fields, hit.name) == ("2", "cook the rice", {"year": 2022}, "2")
    assert len(index) == 3
    assert index.delete(["1", "1", "9"]) == 1
    assert index.delete(where="year >= 2022") == 1
    assert list_ids(index) == ["3"]
    check_consistent(index)


def test_equal_texts_are_embedded_once(index, words):
    rows = [
        {"id": name, "text": text} for name, text in zip("abc", [*TEXTS[:2], TEXTS[0]], strict=True)
    ]
    assert index.add(rows, id="id").embedded == 2
    index.delete(["a"])
    changed = [{"id": "c", "text": TEXTS[0], "lang": "en"}, {"id": "d", "text": f"{TEXTS[1]}\n"}]
    changes = index.add(changed, id="id")
    assert (changes.replaced, changes.added, changes.embedded) == (1, 1, 0)
    assert words.embedded == TEXTS[:2]
    assert index.get("c").fields == {"lang": "en"}
    check_consistent(index)


def test_hits_by_words_by_vectors_and_by_both(index):
    index.add(TEXTS)
    [by_words] = index.search("wheel", by="words")
    assert by_words.words == by_words.score
    assert by_words.vector is None
    by_vectors = index.search("wheel", by="vectors", top_k=9)
    assert [hit.text for hit in by_vectors][:1] == [TEXTS[0]]
    assert len(by_vectors) == 3
    assert_close(by_vectors[0].vector, 0.5)
    assert by_vectors[0].words is None
    best = index.search("wheel", top_k=1)[0]
    assert_close(best.score, 1.0)
    assert_close(best.vector, 0.5)
    assert_close(best.words, by_words.score)
    first, second = index.search(["wheel", "eggs"], top_k=1)
    assert [first[0].text, second[0].text] == TEXTS[:2]


def test_what_only_words_found_has_its_similarity_too(index, monkeypatch):
    monkeypatch.setattr(index_search, "DEPTH", 1)
    index.add(TEXTS)
    embed = index.model.embed_queries
    index.model = replace(index.model, embed_queries=lambda texts: embed(["eggs" for _ in texts]))
    [hit] = index.search("wheel", top_k=1)
    assert hit.text == TEXTS[0]
    [other] = [one for one in index.search("eggs", 3, by="vectors") if one.text == TEXTS[0]]
    assert_close(hit.vector, other.vector)


def test_a_filter_comes_before_the_best_are_taken(index):
    rows = [{"text": f"the wheel {number}", "number": number} for number in range(300)]
    index.add(rows)
    for by in ("words", "vectors", "both"):
        found = index.search("the wheel 7", where={"number": [3, 299]}, by=by, top_k=5)
        assert {hit.fields["number"] for hit in found} == {3, 299}
        assert index.search("wheel", where="number > 1000", by=by) == []
    with pytest.raises(SettingsError, match="numbr"):
        index.search("wheel", where="numbr = 1")


def test_words_in_half_of_a_few_texts_count_beside_vectors(index):
    index.add(["red KX-11", "red KX-12", "blue KX-11", "blue KX-12"])
    assert {hit.text for hit in index.search("KX-12", top_k=2)} == {"red KX-12", "blue KX-12"}


def test_words_are_stemmed_once_enough_texts_say_that_they_are_english(index):
    index.add(["mended tires"])
    assert not index.search("mend", by="words")
    index.add(["this is for the cat and the dog", "that is a boat with the oars"])
    assert [hit.text for hit in index.search("mend", by="words")] == ["mended tires"]
    assert index.info().tokenizer.startswith("porter")
    check_consistent(index)


def test_the_description_names_all_fields(index):
    index.add([{"text": "a boat", **{f"field number {one}": one for one in range(50)}}])
    assert "field number 49 (1)" in index.info().describe()


def test_by_document_gives_each_its_best_passage(index, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "long.txt").write_text("\n\n".join(f"the wheel {number}" for number in range(400)))
    (folder / "short.txt").write_text("a boat without the other thing\n")
    index.add([folder / "long.txt", folder / "short.txt"])
    found = index.search("the wheel 399", by_document=True, top_k=2)
    assert [hit.id for hit in found] == ["docs/long.txt", "docs/short.txt"]
    assert found[0].name == "docs/long.txt:799"
    assert found[0].text == "the wheel 399"


def test_a_corpus_is_brought_up_to_date(index, words, tmp_path):
    corpus = tmp_path / "notes"
    corpus.mkdir()
    (corpus / "a.md").write_text("# One\ntake the wheel off\n\nboil the eggs\n")
    (corpus / "b.txt").write_text("paint the boat\n")
    (corpus / "c.jsonl").write_text('{"text": "x y"}\n{"text": "z", "lang": "de"}\n')
    assert index.update(corpus).added == 4
    num_embedded = len(words.embedded)
    assert not index.update(corpus)
    (corpus / "a.md").write_text("# One\ntake the wheel off\n\nboil the rice\n")
    (corpus / "b.txt").rename(corpus / "d.txt")
    (corpus / "c.jsonl").write_text('{"text": "x y"}\n')
    changes = index.update(corpus)
    assert (changes.added, changes.replaced, changes.deleted) == (1, 1, 2)
    assert words.embedded[num_embedded:] == ["boil the rice"]
    assert sorted(list_ids(index)) == ["notes/a.md", "notes/c.jsonl:1", "notes/d.txt"]
    index.add([{"text": "of no file", "id": "own"}], id="id")
    (corpus / "a.md").unlink()
    assert index.update(corpus).deleted == 1
    assert index.get("own") is not None
    check_consistent(index)


def test_an_update_refuses_the_id_of_another_file_and_takes_it_where_that_is_read_too(
    tmp_path, words
):
    corpus = tmp_path / "tables"
    corpus.mkdir()
    settings = IndexSettings(id_column="id")
    index = Index(tmp_path / "x.bertkit", model=words.as_model(), settings=settings)
    (corpus / "a.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n')
    (corpus / "b.jsonl").write_text('{"id": 3, "text": "three"}\n')
    index.update(corpus)
    (corpus / "b.jsonl").write_text('{"id": 1, "text": "another"}\n')
    with pytest.raises(
        InputError, match=r"b\.jsonl, line 1 has the id 1, as a document of .*a\.jsonl"
    ):
        index.update(corpus)
    (corpus / "a.jsonl").write_text('{"id": 2, "text": "two"}\n')
    assert index.update(corpus).replaced == 1
    assert index.get("1").text == "another"
    (corpus / "a.jsonl").write_text('{"id": 2, "text": "two"}\n{"id": 2, "text": "again"}\n')
    with pytest.raises(InputError, match=r"line 2 has the id 2, as .*line 1 has"):
        index.update(corpus)
    check_consistent(index)


def test_a_failure_keeps_whole_batches_and_the_same_call_goes_on(index, words, monkeypatch):
    monkeypatch.setattr("bertkit.retrieval.index.BATCH_DOCUMENTS", 2)
    rows = [{"id": number, "text": f"text {number}"} for number in range(5)]
    compute = words.embed_passages

    def fail(texts):
        if "text 3" in texts:
            raise BertkitError("no more")
        return compute(texts)

    index.model = replace(index.model, embed_passages=fail)
    with pytest.raises(BertkitError, match="no more"):
        index.add(rows, id="id")
    assert list_ids(index) == ["0", "1"]
    index.model = words.as_model()
    changes = index.add(rows, id="id")
    assert (changes.unchanged, changes.added, changes.embedded) == (2, 3, 3)
    check_consistent(index)


def test_another_model_is_refused_by_search_and_by_add(index, tmp_path):
    index.add(TEXTS)
    other = Index(index.path, model=WordModel().as_model("other"))
    for call in (lambda: other.search("wheel"), lambda: other.add(["new"])):
        with pytest.raises(SettingsError, match="has vectors of words, not of other"):
            call()
    with pytest.raises(SettingsError, match="another program"):
        Index(index.path).search("wheel")
    assert [hit.text for hit in Index(index.path).search("wheel", by="words")] == TEXTS[:1]


def test_two_writers_that_begin_with_different_models_leave_one(tmp_path):
    first = Index(tmp_path / "x.bertkit", model=WordModel().as_model("first"))
    second = Index(tmp_path / "x.bertkit", model=WordModel().as_model("second"))
    assert len(first.add([]).describe()) > 0
    assert second.model.identity["model"] == "second"
    first.add(TEXTS)
    with pytest.raises(SettingsError, match="has vectors of first"):
        second.add(["more"])
    check_consistent(first)


def test_what_is_missing_empty_or_blank(tmp_path, words):
    with pytest.raises(MissingFileError, match="bertkit index add"):
        Index(tmp_path / "no.bertkit").search("wheel")
    assert not list(tmp_path.iterdir())
    index = Index(model=words.as_model())
    assert index.search("wheel") == []
    assert index.search(["a", "b"]) == [[], []]
    changes = index.add(["  ", "", "a\0b"])
    assert (changes.added, changes.blank) == (1, 2)
    assert list_ids(index) == ["2"]
    with pytest.raises(InputError, match="query 2 is empty"):
        index.search(["a", " "])
    with pytest.raises(SettingsError, match="ids, or a filter"):
        index.delete()
    with pytest.raises(SettingsError, match="no setting wher;"):
        index.search("a", wher="x")
    with pytest.raises(SettingsError, match="no setting pool;"):
        Index(pool="cls")


def test_a_cell_called_id_is_the_id_and_what_is_not_there_leaves_no_file(tmp_path, words):
    index = Index(tmp_path / "x.bertkit", model=words.as_model())
    with pytest.raises(BertkitError, match="no file"):
        index.add(str(tmp_path / "missing.csv"))
    assert not index.path.exists()
    index.add([{"id": 0, "text": "hello"}, {"id": None, "text": "there"}])
    assert index.get("0").fields == {}
    assert len(index) == 2
    assert repr(index) == f"Index({str(index.path)!r})"


def test_a_batch_is_read_whole_before_it_is_stored(index, tmp_path):
    rows = [{"text": "a" * 300_000}, {"text": "b"}, {"text": 5}, {"id": 1, "text": "c"}]
    rows.append(dict(rows[-1]))
    with pytest.raises(
        InputError, match=r"row 5 has the id 1, as .*row 4 has; give each row an id"
    ):
        index.add(rows)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_bytes(b"\x00\x01\x02" * 300)
    with pytest.raises(InputError, match="isn't text"):
        index.add([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert list_ids(index) == []


def test_files_whose_ids_begin_anew_can_be_numbered(words, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": 1, "text": "pear {name}"}}\n')
    index = Index(model=words.as_model())
    with pytest.raises(InputError, match=r"number them all with --id-column ''"):
        index.add([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    index.add([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], id="")
    assert [hit.fields for hit in index.search("pear")] == [{"id": 1}, {"id": 1}]


def test_an_empty_text_deletes_what_had_its_id(index, tmp_path):
    index.add([{"id": "a", "text": "hello"}, {"id": "b", "text": "there"}])
    changes = index.add([{"id": "a", "text": " "}, {"id": "c", "text": ""}])
    assert (changes.deleted, changes.blank, changes.added, changes.unchanged) == (1, 2, 0, 0)
    assert list_ids(index) == ["b"]
    path = tmp_path / "a.md"
    for text, num in (("hello", 2), ("\n", 1)):
        path.write_text(text)
        index.add([path])
        assert len(index) == num
    check_consistent(index)


def test_an_index_that_was_removed_is_made_anew(index):
    index.add(["one"])
    index.path.unlink()
    with pytest.raises(MissingFileError, match="doesn't exist"):
        index.search("one")
    assert index.add(["two"]).added == 1
    assert [hit.text for hit in index.search("one")] == ["two"]


def test_who_had_a_removed_index_open_leaves_its_successor_alone(tmp_path, words):
    old, new, other = (Index(tmp_path / "x.bertkit", model=words.as_model()) for _ in range(3))
    old.add(["one"])
    old.path.unlink()
    for name in ("x.bertkit-wal", "x.bertkit-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    new.add(["two"])
    old.close()
    new.add(["three"])
    assert len(other) == 2


def test_files_of_two_folders_of_one_name_do_not_replace_each_other(index, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "notes").mkdir(parents=True)
        (tmp_path / name / "notes" / "x.md").write_text(f"text of {name}")
    index.update(tmp_path / "a" / "notes")
    for change in (index.update, lambda folder: index.add(str(folder))):
        with pytest.raises(InputError, match=r"b/notes/x\.md would replace a/notes/x\.md"):
            change(tmp_path / "b" / "notes")
    assert index.get("notes/x.md").text == "text of a"
    (tmp_path / "a").rename(tmp_path / "c")
    assert index.update(tmp_path / "c" / "notes").describe() == "1 document unchanged"
    both = [tmp_path / "b" / "notes", tmp_path / "c" / "notes"]  # given together
    assert index.update(both).added == 1
    assert index.update(both[::-1]).replaced == 2


def test_what_is_gone_is_found_however_the_corpus_was_named(index, tmp_path):
    corpus, other = tmp_path / "notes", tmp_path / "z.md"
    corpus.mkdir()
    for name in ("x", "y", "z"):
        (corpus / f"{name}.md").write_text(f"text of {name}")
    other.write_text("z")
    index.update([corpus, other])
    (corpus / "y.md").unlink()
    assert index.update(corpus).deleted == 1
    index.update(str(corpus / "*.md"))
    (corpus / "x.md").unlink()
    assert index.update(str(corpus / "*.md")).deleted == 1
    (corpus / "deep").mkdir()
    (corpus / "deep" / "w.md").write_text("w")
    index.update(corpus)
    assert index.update(corpus / "deep").deleted == 0  # has it by another name
    index.delete(["deep/w.md"])
    shutil.rmtree(corpus / "deep")
    assert index.update(str(corpus / "*")).deleted == 1
    assert sorted(list_ids(index)) == ["notes/z.md", f"{tmp_path.name}/z.md"]


def test_what_another_process_stored_meanwhile_is_not_lost(index, words, tmp_path, monkeypatch):
    corpus, other = tmp_path / "notes", Index(index.path, model=words.as_model())
    corpus.mkdir()
    table, gone = corpus / "rows.jsonl", corpus / "x.md"
    table.write_text('{"text": "a"}\n')
    gone.write_text("text of x")
    index.update(corpus)
    gone.unlink()
    table.write_text('{"text": "b"}\n')

    def embed_after_the_other(texts):
        index.model = words.as_model()
        gone.write_text("another text of x")
        table.write_text('{"text": "b"}\n{"text": "c"}\n')
        other.update(corpus)
        return words.embed(texts)

    finish, calls = IndexWriter.finish, []

    def finish_the_other_last(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            finish(*arguments)

    index.model = replace(index.model, embed_passages=embed_after_the_other)
    monkeypatch.setattr(IndexWriter, "finish", finish_the_other_last)
    index.update(corpus)
    finish(*calls[0])
    other.update(corpus)
    assert sorted(one.text.strip() for one in index.documents()) == ["another text of x", "b", "c"]


def test_ids_with_nul_empty_filters_and_long_numbers(index):
    index.add([{"id": "a", "text": "x", "n": 10**30}, {"id": "a\0b", "text": "y", "n": 2**53}])
    assert index.get("a").fields == {"n": str(10**30)}
    assert index.delete(["a\0b"]) == 1
    for where in ({}, ""):
        with pytest.raises(SettingsError, match="isn't empty"):
            index.delete(where=where)
    assert list_ids(index) == ["a"]


def test_a_model_of_before_is_checked_at_a_search(index, tmp_path):
    other = Index(index.path, model=WordModel().as_model("other"))
    assert other.model.identity["model"] == "other"
    with pytest.raises(MissingFileError):
        len(Index(tmp_path / "y.bertkit"))
    index.add(TEXTS)
    with pytest.raises(SettingsError, match="has vectors of words, not of other"):
        other.search("wheel")
    with pytest.raises(SettingsError, match="has vectors of words, not of other"):
        other.find(["wheel"], WordModel().embed(["wheel"]), QuerySettings())


def test_numbers_in_memory_are_given_once(words):
    index = Index(model=words.as_model())
    index.add(["", "a"])
    assert index.add(["b", "c"]).added == 2
    assert list_ids(index) == ["1", "2", "3"]


def test_info(index):
    assert (
        index.add([{"text": "a b", "lang": "de"}, {"text": "c", "lang": ["de", "en"]}]).added == 2
    )
    info = index.info()
    assert (info.documents, info.passages, info.sources) == (2, 2, 0)
    assert (info.model, info.dimension, info.similarity) == ("words", DIMENSION, "cosine")
    assert info.fields == {"lang": 2}
    assert info.size_bytes > 4096
    assert info.changed


def test_threads_may_share_an_index(index):
    errors = []

    def write(number):
        try:
            for step in range(5):
                index.add([{"id": f"{number}-{step}", "text": f"wheel {number} {step}"}], id="id")
        except BertkitError as error:
            errors.append(error)

    def read():
        try:
            for _ in range(10):
                hits = index.find(["wheel"], WordModel().embed(["wheel"]), QuerySettings(top_k=99))
                assert len({hit.id for hit in hits[0]}) == len(hits[0])
        except (BertkitError, AssertionError, sqlite3.Error) as error:
            errors.append(error)

    index.add(["wheel"])
    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    assert len(index) == 11
    check_consistent(index)


def test_deleting_describing_and_words_need_no_torch(index):
    index.add(
        [{"id": name, "text": text} for name, text in zip("abc", TEXTS, strict=True)], id="id"
    )
    code = f"""
import sys
from bertkit.retrieval.index import Index
with Index({str(index.path)!r}) as index:
    index.info(), index.get("a"), index.delete(["a"]), index.search("boat", by="words")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert list_ids(index) == ["b", "c"]
    assert index.search("wheel", by="words") == []
