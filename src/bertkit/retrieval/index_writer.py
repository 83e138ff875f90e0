"""Batches of documents: cut and embedded outside of transactions, then stored in one each."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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


class _Prepared(NamedTuple):
    document: SourceDocument
    sha256: bytes
    passages: list[tuple[bytes, Passage]]  # each with the SHA-256 of its text


@dataclass
class IndexWriter:
    """Stores the documents of one call, and counts what changes.

    Attributes:
        find_model: returns the model, and loads it if it isn't loaded.
        open_vectors: returns the vectors of the index; the dimension counts if it has none yet.
        corpus: what the files belong to; None if they are added to any.
        movable: files whose documents may become those of another; None for all.
        owners: the names of files by the ids of their documents, of those read so far.
    """

    file: IndexFile
    find_model: Callable[[], IndexModel]
    open_vectors: Callable[[int], StoredVectors]
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
        hashes = {name: _hash_document(one) for name, one in batch.items()}
        with self.file.reading() as connection:
            known, state = _find_known(connection, batch), self.file.state()
        for name, found in known.items():
            self._check_owner(batch[name], found.owner)
        same = {
            name
            for name, found in known.items()
            if (found.sha256, found.owner) == (hashes[name], self.owners.get(name))
        }
        self.changes.unchanged += len(same)
        prepared = self._prepare([one for name, one in batch.items() if name not in same], hashes)
        if not prepared:
            return
        vectors = self._find_vectors(prepared)
        with self.file.writing() as connection:
            if self.file.state() != state:  # another process was faster
                known = _find_known(connection, batch)
            replaced = [
                known[one.document.id].number for one in prepared if one.document.id in known
            ]
            self.delete(connection, replaced)
            self._write_model(connection, prepared)
            self._write(connection, prepared, vectors)
        self.changes.replaced += len(replaced)
        self.changes.added += len(prepared) - len(replaced)

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
        self.open_vectors(0).delete(connection, [row for row, _ in rows])
        connection.execute(f"DELETE FROM passages WHERE document {LISTED}", listed)
        delete_fields(connection, numbers)
        connection.execute(f"DELETE FROM documents WHERE number {LISTED}", listed)

    def _check_owner(self, document: SourceDocument, owner: str | None) -> None:
        is_other = owner is not None and owner != self.owners.get(document.id)
        if is_other and self.movable is not None and owner not in self.movable:
            raise InputError(
                f"{document.place} has the id {show(document.id)}, as a document of"
                f" {show(str(owner))} has; give each document an id of its own"
            )

    def _prepare(
        self, documents: Sequence[SourceDocument], hashes: dict[str, bytes]
    ) -> list[_Prepared]:
        """Cut documents into passages."""
        if not documents:
            return []
        model = self.find_model()
        settings = PassageSettings(
            passage_tokens=model.passage_tokens, passage_overlap=model.passage_overlap
        )
        prepared = []
        for one in documents:
            passages = cut_passages(one.text, model.measure, settings, stays_whole=one.is_row)
            hashed = [(hash_text(passage.text), passage) for passage in passages]
            prepared.append(_Prepared(one, hashes[one.id], hashed))
        return prepared

    def _find_vectors(self, prepared: Sequence[_Prepared]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vector of each text of a passage: a stored one, or else computed."""
        passages = [passage for one in prepared for passage in one.passages]
        texts = {sha256: passage.text.strip() for sha256, passage in passages}
        model, select = self.find_model(), "SELECT row FROM passages WHERE sha256 = ?"
        with self.file.reading() as connection:
            found = {sha256: connection.execute(select, (sha256,)).fetchone() for sha256 in texts}
            rows = {sha256: row[0] for sha256, row in found.items() if row is not None}
            stored = self.open_vectors(int(model.identity["dimension"] or 0))
            vectors = dict(zip(rows, stored.read(connection, [*rows.values()]), strict=True))
        missing = {sha256: text for sha256, text in texts.items() if sha256 not in vectors}
        if missing:
            computed = model.embed_passages([*missing.values()])
            vectors |= dict(zip(missing, np.asarray(computed, np.float32), strict=True))
            self.changes.embedded += len(missing)
        return vectors

    def _write(
        self,
        connection: Connection,
        prepared: Sequence[_Prepared],
        vectors: dict[bytes, NDArray[np.float32]],
    ) -> None:
        """Add documents with their passages, words and vectors."""
        names = {self.owners.get(one.document.id) for one in prepared}
        sources = {name: self._add_source(connection, name, "") for name in names if name}
        rows, row = list[tuple[int, int, int, int, str, bytes]](), _find_last_row(connection)
        fields_of: dict[int, dict[str, JsonValue]] = {}
        for document, sha256, passages in prepared:
            source = sources.get(self.owners.get(document.id, ""))
            fields = json.dumps(document.fields, ensure_ascii=False)
            number = connection.execute(
                "INSERT INTO documents (id, source, sha256, fields) VALUES (?, ?, ?, ?)",
                (document.id, source, sha256, fields),
            ).lastrowid
            assert number is not None
            fields_of[number] = document.fields
            for of_text, passage in passages:
                row += 1
                rows.append((row, number, passage.start, passage.line, passage.text, of_text))
        add_fields(connection, fields_of)
        connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)
        add_words(connection, ((row, text) for row, *_, text, _ in rows))
        numbers, matrix = [one[0] for one in rows], np.stack([vectors[one[-1]] for one in rows])
        self.open_vectors(0).append(connection, np.array(numbers, np.int64), matrix)
        self.changes.passages += len(rows)

    def _write_model(self, connection: Connection, prepared: Sequence[_Prepared]) -> None:
        """Store what the vectors depend on, or check that it is what is stored."""
        model, found = self.find_model(), self.file.read_fact("embedding")
        if found is not None:
            model.check(cast("Identity", found), self.file.path)
            return
        tokenizer = choose_tokenizer([one.document.text for one in prepared])
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


def _find_last_row(connection: Connection) -> int:
    """Return the greatest row that a passage ever had."""
    select = "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'passages'"
    row: int = connection.execute(select).fetchone()[0]
    return row


def _hash_document(document: SourceDocument) -> bytes:
    content = json.dumps([document.text, document.fields], sort_keys=True)
    return hashlib.sha256(content.encode()).digest()
