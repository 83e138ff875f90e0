"""What an index returns: hits, stored documents, counts of changes, and its description."""

import hashlib
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from bertkit.base.errors import pluralize
from bertkit.base.json_files import parse_json
from bertkit.reports.notebook import Tabular
from bertkit.reports.text import show
from bertkit.retrieval.passages import Passage


@dataclass(frozen=True)
class Hit(Tabular):
    """A passage that a search found.

    Attributes:
        id: of its document.
        score: orders the hits, higher is better; its scale depends on how they were found.
        text: of the passage.
        start: characters of the document before the passage.
        line: of the document where the passage begins, from 1.
        fields: of the document.
        words: BM25 of the query's words; None if the passage wasn't found by words.
        vector: similarity to the query; None if vectors weren't compared.
        reranked: value of the reranking model; None without one.
        is_file: whether the document is a whole file of plain text.
    """

    id: str
    score: float
    text: str
    start: int = 0
    line: int = 1
    fields: dict[str, JsonValue] = field(default_factory=dict)
    words: float | None = None
    vector: float | None = None
    reranked: float | None = None
    is_file: bool = False

    @property
    def name(self) -> str:
        """How it is shown: file and line of plain text, else the document's id."""
        return f"{self.id}:{self.line}" if self.is_file else self.id


def hash_text(text: str) -> bytes:
    """Return the SHA-256 of a passage's text, without the blanks around it, as it is embedded."""
    return hashlib.sha256(text.strip().encode()).digest()


def read_fields(content: str, name: str) -> dict[str, JsonValue]:
    """Return the fields of a document that has this id, from JSON."""
    return cast(
        "dict[str, JsonValue]", parse_json(str(content), f"the fields of {show(str(name))}")
    )


@dataclass(frozen=True)
class StoredDocument:
    """A document of an index, with its fields and passages."""

    id: str
    fields: dict[str, JsonValue]
    passages: list[Passage]

    @property
    def text(self) -> str:
        """The whole text; passages leave nothing out, and may overlap."""
        whole = ""
        for passage in self.passages:
            whole = whole[: passage.start] + passage.text
        return whole


@dataclass
class Changes:
    """Counts of documents that an index added, replaced …, and of their passages.

    Texts without a word are `blank`, and left out; `embedded` are those no equal text had a vector
    of.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    passages: int = 0
    embedded: int = 0
    blank: int = 0

    def __bool__(self) -> bool:
        """Whether a document was added, replaced or deleted."""
        return bool(self.added or self.replaced or self.deleted)

    def describe(self) -> str:
        """Return the counts that aren't 0 in one line."""
        names = ("added", "replaced", "deleted", "unchanged")
        counts = {name: getattr(self, name) for name in names}
        parts = [f"{pluralize(one, 'document')} {name}" for name, one in counts.items() if one]
        line = ", ".join(parts)
        if self.passages:
            line += f"; {pluralize(self.passages, 'passage')}, {self.embedded:,} embedded"
        return line or "nothing has changed"


@dataclass(frozen=True)
class IndexInfo:
    """The description of an index; what depends on the model is None before the first document.

    `fields` has how many documents have each field, `changed` the UTC time of the last change.
    """

    documents: int
    passages: int
    sources: int
    model: str | None
    precision: str | None
    dimension: int | None
    similarity: str | None
    tokenizer: str | None
    size_bytes: int
    fields: dict[str, int]
    changed: str | None

    def describe(self) -> str:
        """Return a line for each value."""
        named = ", ".join(f"{name} ({number:,})" for name, number in self.fields.items())
        size = f"{self.size_bytes / 1e6:,.1f} MB"
        values = {**vars(self), "fields": named, "size_bytes": size}
        if self.tokenizer and self.precision:
            values["tokenizer"] = "English, stemmed" if "porter" in self.tokenizer else "as written"
            values["precision"] = f"computed in {self.precision}"
        lines = {
            name.partition("_")[0]: show(str(value), 10_000)
            for name, value in values.items()
            if value
        }
        return "\n".join(f"{name:<10} {value}" for name, value in lines.items())
