"""Batches of documents: cut and embedded outside of transactions, then stored in one each."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from bertkit.retrieval.settings import PassageSettings
from bertkit.retrieval.stored_vectors import StoredVectors
from bertkit.retrieval.vector_file import Identity
from bertkit.retrieval.words import add_words, choose_tokenizer, create_words, delete_words

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
        owners: the names of files by the ids of their documents, of those read so far.
    """

    file: IndexFile
    find_model: Callable[[], IndexModel]
    find_vectors: Callable[[], StoredVectors]
    corpus: str | None = None
    movable: Collection[str] | None = None
    changes: Changes = field(default_factory=Changes)
    owners: dict[str, str] = field(default_factory=dict)

    def read(self, sources: Iterable[SourceFile]) -> Iterator[SourceDocument]:
        """Yield the documents of files."""
        for source in sources:
            for document in source.documents():
                self.owners[document.id] = source.name
                yield document

    def store(self, documents: Sequence[SourceDocument]) -> None:
        """Store those of some documents that are new or changed, as one transaction."""
        batch = {one.id: one for one in documents if one.text.replace("\0", "").strip()}
        for blank in {one.id for one in documents} - batch.keys():
            self.owners.pop(blank, None)
        self.changes.blank += len(documents) - len(batch)
        with self.file.reading() as connection:
            known, state = _find_known(connection, batch), self.file.state()
        changed = [one for one in batch.values() if self._is_changed(one, known.get(one.id))]
        self.changes.unchanged += len(batch) - len(changed)
        if not changed:
            return
        passages = self._cut(changed)
        vectors = self._find_vectors(passages)
        with self.file.writing() as connection:
            if self.file.state() != state:  # another process was faster
                known = _find_known(connection, batch)
            replaced = [known[one.id].number for one in changed if one.id in known]
            self.delete(connection, replaced)
            self._write_model(connection, changed)
            self._write(connection, changed, passages, vectors)
        self.changes.replaced += len(replaced)
        self.changes.added += len(changed) - len(replaced)

    def finish(self, sources: Sequence[SourceFile], gone: Sequence[str]) -> None:
        """Delete at last what files no longer have, and the documents of files that are gone."""
        select = (
            "SELECT documents.number, id FROM documents"
            " JOIN sources ON source = sources.number WHERE name = ?"
        )
        with self.file.writing() as connection:
            for source in sources:
                self._add_source(connection, source.name, source.stamp)
            numbers = [
                number
                for name in (*gone, *(source.name for source in sources))
                for number, own_id in connection.execute(select, (name,)).fetchall()
                if self.owners.get(own_id) != name
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
        owner = self.owners.get(document.id)
        if known is None or known.owner == owner:
            return known is None or known.sha256 != _hash_document(document)
        if known.owner and self.movable is not None and known.owner not in self.movable:
            raise InputError(
                f"{document.place} has the id {show(document.id)}, as a document of"
                f" {show(known.owner)} has; give each document an id of its own"
            )
        return True

    def _cut(self, documents: Sequence[SourceDocument]) -> Passages:
        model = self.find_model()
        settings = PassageSettings(
            passage_tokens=model.passage_tokens, passage_overlap=model.passage_overlap
        )
        return {
            one.id: cut_passages(one.text, model.measure, settings, stays_whole=one.is_row)
            for one in documents
        }

    def _find_vectors(self, passages: Passages) -> ByText:
        """Return the vector of the text of each passage: a stored one, or else computed."""
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
        for one in documents:
            owner = self.owners.get(one.id)
            number = connection.execute(
                "INSERT INTO documents (id, source, sha256, fields) VALUES (?, ?, ?, ?)",
                (
                    one.id,
                    owner and self._add_source(connection, owner, ""),
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

    def _add_source(self, connection: Connection, name: str, stamp: str) -> int:
        """Store a file, and return its number; with an empty stamp, it will be read again."""
        number: int = connection.execute(
            "INSERT INTO sources (name, corpus, stamp) VALUES (?1, ifnull(?2, ''), ?3)"
            " ON CONFLICT (name) DO UPDATE SET corpus = ifnull(?2, corpus), stamp = ?3"
            " RETURNING number",
            (name, self.corpus, stamp),
        ).fetchone()[0]
        return number


def _find_known(connection: Connection, ids: Iterable[str]) -> dict[str, _Known]:
    """Return those documents of some ids that are stored."""
    select = (
        "SELECT documents.number, sha256, name FROM documents"
        " LEFT JOIN sources ON source = sources.number WHERE id = ?"
    )
    found = ((one, connection.execute(select, (one,)).fetchone()) for one in ids)
    return {name: _Known(*values) for name, values in found if values is not None}


def _hash_document(document: SourceDocument) -> bytes:
    content = json.dumps([document.text, document.fields], sort_keys=True)
    return hashlib.sha256(content.encode()).digest()
