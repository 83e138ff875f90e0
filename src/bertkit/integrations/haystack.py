"""Document store and retriever for Haystack."""

import re
from pathlib import Path
from typing import Any, Self

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.retrieval.index import Index
from bertkit.retrieval.index_file import IndexFile

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"Haystack isn't installed ({error.name} is missing); {describe_install('haystack')}"
    ) from None

ID, TEXT = "\0id", "\0text"  # columns, beside those of any metadata
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")  # ordered as texts
WORDS = {"AND": " and ", "OR": " or ", "NOT": " and "}
SIGNS = {"==", "!=", ">", ">=", "<", "<="}
Filters = dict[str, Any]


class BertkitDocumentStore:
    """An index of bertkit as a document store; takes its file, if it has one, model, settings."""

    def __init__(self, path: str | None = None, model: str | None = None, **settings: Any) -> None:
        self.parameters = {"path": path, "model": model, **settings}
        if path is not None:
            IndexFile.open(Path(path), creates=True).close()  # empty, until documents are written
        self.index = Index(path, model=model, **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return what the store is made of."""
        return default_to_dict(self, **self.parameters)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the store that `to_dict` described."""
        return default_from_dict(cls, data)

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self.index)

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """Return the documents that pass, in the order in which they were written."""
        found = self.index.documents(write_filter(filters) or None)
        return [Document(id=one.id, content=one.text, meta=one.fields) for one in found]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Add documents with a text; an id that exists is an error unless the policy says more."""
        if any(not isinstance(one, Document) or one.content is None for one in documents):
            raise InputError("expected a list of haystack.Document, each with a text")
        if policy is not DuplicatePolicy.OVERWRITE:
            known = {one.id for one in documents if self.index.get(one.id) is not None}
            if known and policy is not DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"the index has a document with the id {min(known)}")
            documents = [one for one in documents if one.id not in known]
        rows = [{**one.meta, ID: one.id, TEXT: one.content} for one in documents]
        self.index.add(rows, id=ID, text=TEXT)
        return len(rows)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete the documents that are there."""
        self.index.delete(document_ids)


@component
class BertkitHybridRetriever:
    """Finds passages in a store by words and vectors; options are those of `Index.search`."""

    def __init__(
        self,
        document_store: BertkitDocumentStore,
        filters: Filters | None = None,
        top_k: int = 10,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.document_store, self.filters, self.top_k = document_store, filters, top_k
        self.options = options or {}

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: Filters | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the best passages with their scores; filters replace those of the retriever."""
        where = write_filter(self.filters if filters is None else filters) or None
        index = self.document_store.index
        hits = index.search(query, top_k or self.top_k, where=where, **self.options)
        return {"documents": [Document(h.id, h.text, None, h.fields, h.score) for h in hits]}


def write_filter(given: Filters | None) -> str:
    """Write a filter of Haystack as one of bertkit; FilterError if it isn't one."""
    if not given:
        return ""
    try:
        if "field" in given:
            return _write_comparison(given["field"], given["operator"], given["value"])
        word, parts = WORDS[given["operator"]], map(write_filter, given["conditions"])
    except KeyError as unknown:
        raise FilterError(f"{unknown} is missing in the filter {given}, or unknown") from None
    return f"{'not ' * (given['operator'] == 'NOT')}({word.join(parts)})"


def _write_comparison(field: str, operator: str, value: object) -> str:
    name = '"' + field.removeprefix("meta.").replace('"', '""') + '"'
    has_value, is_order = f"{name} like '%'", operator.startswith(("<", ">"))
    if operator == "not in":
        return f"not {_write_comparison(field, 'in', value)}"
    if operator == "in" and isinstance(value, list) and value:
        return f"({' or '.join(_write_comparison(field, '==', one) for one in value)})"
    if operator in SIGNS and value is None:
        never = f"({has_value} and not {has_value})"
        return never if is_order else "not " * (operator == "==") + has_value
    if isinstance(value, bool):
        value = str(value).lower()
    is_text = isinstance(value, str) and (not is_order or DATE.fullmatch(value))
    if operator not in SIGNS or not (is_text or isinstance(value, int | float)):
        raise FilterError(f"expected a comparison with {field}, got {operator} {value!r}")
    shown = "'" + str(value).replace("'", "''") + "'" if is_text else value
    return f"{name} {operator.replace('==', '=')} {shown}"
