"""Batches of documents: cut and embedded outside of transactions, then stored in one each."""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from sqlite3 import Connection
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from bertkit.base.errors import InputError
from bertkit.reports.text import show
from bertkit.retrieval.documents import SourceDocument, SourceFile
from bertkit.retrieval.filters import add_fields, delete_fields
from bertkit.retrieval.hits import Changes, hash_text
from bertkit.retrieval.index_file import IndexFile
from bertkit.retrieval.index_model import IndexModel
from bertkit.retrieval.passages import Passage, cut_passages
from bertkit.retrieval.stored_vectors import StoredVectors
from bertkit.retrieval.vector_file import Identity
from bertkit.retrieval.words import (
    add_words,
    choose_tokenizer,
    create_words,
    delete_words,
    update_tokenizer,
)

LISTED = "IN (SELECT value FROM json_each(?))"


class _Known(NamedTuple):
    number: int
    sha256: bytes
    owner: str | None  # the name of its file


Passages = dict[str, list[Passage]]  # of documents by id
ByText = dict[str, NDArray[np.float32]]  # vectors


@dataclass
class IndexWriter:
    """Stores the documents of one call, and counts what changes.

    Attributes:
        find_model: returns the model, and loads it if it isn't loaded.
        find_vectors: returns the vectors of the index.
        corpus: what the files belong to; None if they are added to any.
        movable: files whose documents may become those of another; None for all.
        seen: the stamps of files before.
        places: of the documents read so far, by their ids.
    """

    file: IndexFile
    find_model: Callable[[], IndexModel]
    find_vectors: Callable[[], StoredVectors]
    corpus: str | None = None
    movable: Collection[str] | None = None
    changes: Changes = field(default_factory=Changes)
    seen: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def store(self, documents: Sequence[SourceDocument]) -> None:
        """Store those of some documents that are new or changed, as one transaction.

        One without a text is deleted.
        """
        for one in documents:
            self._check_id(one, self.places.get(one.id))
            self.places[one.id] = one.place
        with self.file.reading() as connection:
            known, state = _find_known(connection, documents), self.file.state()
        changed = [one for one in documents if self._is_changed(one, known.get(one.id))]
        written = [one for one in changed if not one.is_blank]
        if changed:
            passages = self._cut(written)
            vectors = self._find_vectors(passages)
            with self.file.writing() as connection:
                if self.file.state() != state:  # another process was faster
                    known = _find_known(connection, documents)
                self.delete(
                    connection, [known[one.id].number for one in changed if one.id in known]
                )
                if written:
                    self._write_model(connection, written)
                    self._write(connection, written, passages, vectors)
                    tokenizer = cast("str", self.file.read_fact("tokenizer"))
                    if (chosen := update_tokenizer(connection, tokenizer)) != tokenizer:
                        self.file.write_fact(connection, "tokenizer", chosen)
        num_blank, counts = sum(one.is_blank for one in documents), self.changes
        num_replaced = sum(one.id in known for one in written)
        counts.blank += num_blank
        counts.unchanged += len(documents) - num_blank - len(written)
        counts.replaced += num_replaced
        counts.added += len(written) - num_replaced
        counts.deleted += sum(one.id in known for one in changed if one.is_blank)

    def finish(self, sources: Sequence[SourceFile], gone: Sequence[str]) -> None:
        """Delete at last what files no longer have, and the documents of files that are gone.

        Files that another process stored meanwhile are left to the next update.
        """
        select = (
            "SELECT documents.number, id FROM documents"
            " JOIN sources ON source = sources.number WHERE name = ?"
        )
        with self.file.writing() as connection:
            now, seen = dict(connection.execute("SELECT name, stamp FROM sources")), self.seen
            own = [s for s in sources if now.get(s.name) in (seen.get(s.name), s.unfinished)]
            gone = [name for name in gone if now.get(name) == seen[name]]
            for source in own:
                self._add_source(connection, source, source.stamp)
            numbers = [
                number
                for name in (*gone, *(source.name for source in own))
                for number, own_id in connection.execute(select, (name,)).fetchall()
                if own_id not in self.places
            ]
            self.delete(connection, numbers)
            connection.executemany("DELETE FROM sources WHERE name = ?", ((one,) for one in gone))
        self.changes.deleted += len(numbers)

    def delete(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Delete documents, by their numbers, and note the time of the change."""
        now = connection.execute("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')").fetchone()[0]
        self.file.write_fact(connection, "changed", now)
        if not numbers:
            return
        listed = (json.dumps(numbers),)
        select = f"SELECT row, text FROM passages WHERE document {LISTED}"
        rows = connection.execute(select, listed).fetchall()
        delete_words(connection, rows)
        self.find_vectors().delete(connection, [row for row, _ in rows])
        connection.execute(f"DELETE FROM passages WHERE document {LISTED}", listed)
        delete_fields(connection, numbers)
        connection.execute(f"DELETE FROM documents WHERE number {LISTED}", listed)

    def _is_changed(self, document: SourceDocument, known: _Known | None) -> bool:
        """Whether a document differs from the stored one; it may not be that of another file."""
        if known is None:
            return not document.is_blank
        if known.owner == (document.source and document.source.name):
            return document.is_blank or known.sha256 != _hash_document(document)
        if known.owner and self.movable is not None and known.owner not in self.movable:
            self._check_id(document, f"a document of {show(known.owner)}")
        return True

    def _check_id(self, document: SourceDocument, earlier: str | None) -> None:
        if earlier is not None:
            raise InputError(
                f"{document.place} has the id {show(document.id)}, as {earlier} has; give each row"
                " an id of its own, or number them all with --id-column ''"
            )

    def _cut(self, documents: Sequence[SourceDocument]) -> Passages:
        if not documents:
            return {}
        model = self.find_model()
        size, overlap = model.passage_tokens, model.passage_overlap
        return {
            one.id: cut_passages(one.text, model.measure, size, overlap, stays_whole=one.is_row)
            for one in documents
        }

    def _find_vectors(self, passages: Passages) -> ByText:
        """Return the vector of the text of each passage: a stored one, or else computed."""
        if not passages:
            return {}
        texts = {one.text.strip(): hash_text(one.text) for one in chain(*passages.values())}
        model, select = self.find_model(), "SELECT row FROM passages WHERE sha256 = ?"
        with self.file.reading() as connection:
            found = {text: connection.execute(select, (texts[text],)).fetchone() for text in texts}
            rows = {text: row[0] for text, row in found.items() if row is not None}
            stored = self.find_vectors().read(connection, [*rows.values()])
        vectors = dict(zip(rows, stored, strict=True))
        if missing := [text for text in texts if text not in vectors]:
            computed = np.asarray(model.embed_passages(missing), np.float32)
            vectors |= dict(zip(missing, computed, strict=True))
            self.changes.embedded += len(missing)
        return vectors

    def _write(
        self,
        connection: Connection,
        documents: Sequence[SourceDocument],
        passages: Passages,
        vectors: ByText,
    ) -> None:
        """Add documents with their passages, words and vectors."""
        texts, fields = list[tuple[int, str]](), dict[int, dict[str, JsonValue]]()
        files = {one.source.name: one.source for one in documents if one.source}
        sources = {
            name: self._add_source(connection, file, file.unfinished)
            for name, file in files.items()
        }
        for one in documents:
            number = connection.execute(
                "INSERT INTO documents (id, source, sha256, fields) VALUES (?, ?, ?, ?)",
                (
                    one.id,
                    one.source and sources[one.source.name],
                    _hash_document(one),
                    json.dumps(one.fields),
                ),
            ).lastrowid
            assert number is not None
            fields[number] = one.fields
            for passage in passages[one.id]:
                row = connection.execute(
                    "INSERT INTO passages (document, start, line, text, sha256)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (number, passage.start, passage.line, passage.text, hash_text(passage.text)),
                ).lastrowid
                texts.append((cast("int", row), passage.text))
        add_fields(connection, fields)
        add_words(connection, texts)
        rows = np.array([row for row, _ in texts], np.int64)
        matrix = np.stack([vectors[text.strip()] for _, text in texts])
        self.find_vectors().append(connection, rows, matrix)
        self.changes.passages += len(texts)

    def _write_model(self, connection: Connection, documents: Sequence[SourceDocument]) -> None:
        """Store what the vectors depend on, or check that it is what is stored."""
        model, found = self.find_model(), self.file.read_fact("embedding")
        if found is not None:
            model.check(cast("Identity", found), self.file.path)
            return
        tokenizer = choose_tokenizer([one.text for one in documents])
        create_words(connection, tokenizer)
        facts: dict[str, JsonValue] = {
            "embedding": dict(model.identity),
            "dimension": model.identity["dimension"],
            "similarity": model.similarity,
            "settings": model.stored,
            "tokenizer": tokenizer,
        }
        for name, value in facts.items():
            self.file.write_fact(connection, name, value)

    def _add_source(self, connection: Connection, source: SourceFile, stamp: str) -> int:
        """Store a file, and return its number; with another stamp, it will be read again."""
        number: int = connection.execute(
            "INSERT INTO sources (name, corpus, stamp) VALUES (?1, ifnull(?2, ''), ?3)"
            " ON CONFLICT (name) DO UPDATE SET corpus = ifnull(?2, corpus), stamp = ?3"
            " RETURNING number",
            (source.name, self.corpus, stamp),
        ).fetchone()[0]
        return number


def _find_known(connection: Connection, documents: Sequence[SourceDocument]) -> dict[str, _Known]:
    """Return those of some documents that are stored, by their ids."""
    select = (
        "SELECT documents.number, sha256, name FROM documents"
        " LEFT JOIN sources ON source = sources.number WHERE id = ?"
    )
    found = ((one.id, connection.execute(select, (one.id,)).fetchone()) for one in documents)
    return {name: _Known(*values) for name, values in found if values is not None}


def _hash_document(document: SourceDocument) -> bytes:
    content = json.dumps([document.text, document.fields], sort_keys=True)
    return hashlib.sha256(content.encode()).digest()
