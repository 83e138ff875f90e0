"""Routes of indexes: search, and with the administrator's key adding and deleting documents."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field, JsonValue

from bertkit.base.errors import BertkitError, BusyError, InputError, SettingsError
from bertkit.base.progress import hidden_progress
from bertkit.base.settings import redefine
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.stream import cut_windows
from bertkit.retrieval.hits import Changes, IndexInfo, StoredDocument
from bertkit.retrieval.index import BATCH_DOCUMENTS, Index
from bertkit.retrieval.settings import By, QuerySettings
from bertkit.retrieval.vector_file import Vectors
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason, ServingError
from bertkit.serving.routes.requests import Body, OwnBody, Text
from bertkit.serving.routes.tasks import TaskResults
from bertkit.serving.searcher import Searcher, ServedIndex

logger = logging.getLogger(__name__)

Changed = TypeVar("Changed")
Where = Text | dict[str, JsonValue]
MAX_HITS = 1000  # of a query
PIECE_CHARS = 1024  # of passages that are embedded at once, for which a search may wait


class QueryBody(OwnBody):
    """A query or several, and what is found for each."""

    query: Text | Annotated[list[Text], Field(min_length=1, fail_fast=True)]
    top_k: Annotated[int, Field(le=MAX_HITS)] = redefine(QuerySettings, "top_k")
    where: Where | None = redefine(QuerySettings, "where")
    by: By = redefine(QuerySettings, "by")
    by_document: bool = redefine(QuerySettings, "by_document")
    truncate: bool | None = None


class Row(Body, extra="allow"):
    """A document: its text, perhaps its id, and its fields under names of their own."""

    id: Text | int | None = None
    text: Text


class RowsBody(OwnBody):
    """Documents to add; those with ids that exist are replaced."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=BATCH_DOCUMENTS, fail_fast=True)]


class DeleteBody(OwnBody):
    """Which documents to delete: either those of some ids, or those that pass a filter."""

    ids: Annotated[list[Text], Field(min_length=1, fail_fast=True)] | None = None
    where: Where | None = None


def find_index(call: RequestContext) -> ServedIndex:
    """Return the index that a request names."""
    found = call.find("search").pipelines["search"]
    assert isinstance(found, Searcher)
    return found.served


async def list_indexes(call: RequestContext, _: None) -> dict[str, IndexInfo]:
    """Describe the indexes, by their names."""
    described = {}
    for name, model in call.service.models.items():
        if "search" in model.loaded.pipelines:
            call.named = name
            described[name] = await asyncio.to_thread(find_index(call).index.info)
    return described


async def search(call: RequestContext, body: QueryBody) -> TaskResults:
    """Find passages of an index by their words and their meaning."""
    queries = [body.query] if isinstance(body.query, str) else body.query
    names = body.model_fields_set & QuerySettings.model_fields.keys()
    options = QuerySettings(**{name: getattr(body, name) for name in names})
    found = await call.compute("search", queries, options, truncate=body.truncate)
    results = found[0] if isinstance(body.query, str) else found
    return TaskResults(call.model, results, {"total_tokens": call.num_tokens})


async def get_document(call: RequestContext, _: None) -> StoredDocument:
    """Return a document of an index."""
    found = await asyncio.to_thread(find_index(call).index.get, call.document)
    if found is None:
        raise Reason.UNKNOWN_DOCUMENT.error(f"{call.model} has no document {call.document!r:.80}")
    return found


async def add_documents(call: RequestContext, body: RowsBody) -> Changes:
    """Add documents to an index, or replace those that have the same ids."""
    rows = [one.model_dump(exclude_unset=True) for one in body.rows]
    return await write(call, lambda index: index.add(rows, text="text"))


async def delete_documents(call: RequestContext, body: DeleteBody) -> dict[str, int]:
    """Delete documents of an index; ids that it doesn't have are left alone."""
    return {"deleted": await write(call, lambda index: index.delete(body.ids, where=body.where))}


async def write(call: RequestContext, change: Callable[[Index], Changed]) -> Changed:
    """Change an index in a thread of its own, one request after the other.

    A change that has begun goes on if its client leaves.
    """
    served = find_index(call)
    async with call.limit_time():
        await served.writes.acquire()
        embed = embed_between(call, served.embedder)
        served.writer.model = replace(served.writer.model, embed_passages=embed)
        with hidden_progress():
            changing = asyncio.ensure_future(asyncio.to_thread(change, served.writer))
        changing.add_done_callback(lambda _: served.writes.release())
        try:
            return await asyncio.shield(changing)
        except (InputError, SettingsError, ServingError):
            raise
        except BusyError:
            raise Reason.OVERLOAD.error("another program changes the index; try again", 1) from None
        except BertkitError as error:
            logger.warning("request %s didn't change the index: %s", call.identity, error)
            message = "the index couldn't be changed; the server's log has the cause"
            raise Reason.FAILED.error(message) from None


def embed_between(call: RequestContext, embedder: Embedder) -> Callable[[list[str]], Vectors]:
    """Return what embeds passages in the model's thread, in pieces, others' requests between."""
    loop = asyncio.get_running_loop()

    async def embed(texts: list[str]) -> Vectors:
        parts = cut_windows(texts, len, PIECE_CHARS, call.service.settings.max_client_batch_size)
        found = [await call.run(embedder, part, truncate=True) for part in parts]
        return np.stack(list(chain.from_iterable(found)))

    return lambda texts: asyncio.run_coroutine_threadsafe(embed(texts), loop).result()


OF_INDEX = "/v1/indexes/{index}/"
ENDPOINTS = (
    Endpoint("/v1/indexes", list_indexes, "openai"),
    Endpoint(OF_INDEX + "search", search, "openai"),
    Endpoint(OF_INDEX + "documents", add_documents, "openai", is_admin=True),
    Endpoint(OF_INDEX + "documents", delete_documents, "openai", is_admin=True, method="DELETE"),
    Endpoint(OF_INDEX + "documents/{document}", get_document, "openai"),
)
