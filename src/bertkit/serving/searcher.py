"""An open index, and search in it as a pipeline: queries in, passages out."""

import asyncio
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from bertkit.base.errors import InputError
from bertkit.base.settings import select
from bertkit.inference.embeddings.embedder import Embedder, find_prompt
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.pipeline import NamedInput, Pipeline
from bertkit.inference.stream import EncodedTexts, TextCounts
from bertkit.retrieval.hits import Hit
from bertkit.retrieval.index import Index
from bertkit.retrieval.settings import IndexSettings, QuerySettings

INDEX_SUFFIX = ".bertkit"


@dataclass(eq=False)
class ServedIndex:
    """An open index, which is closed when nothing uses it any longer.

    Attributes:
        index: what searches.
        writer: the same file, opened again, so that searches don't wait for changes.
        embedder: of its passages.
        writes: held by a request that changes it; the next one waits.
    """

    index: Index
    writer: Index
    embedder: Embedder
    writes: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, self.index.close)
        weakref.finalize(self, self.writer.close)


@dataclass(frozen=True)
class Searcher(Pipeline[str, list[Hit]]):
    """Finds passages of an index.

    Attributes:
        embedder: of the queries.
    """

    served: ServedIndex
    embedder: Embedder
    options: QuerySettings = field(default_factory=QuerySettings)

    @classmethod
    def build(cls, opened: Path, loading: EmbedderSettings) -> Self:  # type: ignore[override]
        """Open an index, which names its model."""
        index = Index(opened, settings=select(IndexSettings, loading))
        index.info()  # refuses one that isn't there, which its model would make
        assert index.model.embedders is not None  # others can't be loaded
        passages, queries = index.model.embedders
        return cls(ServedIndex(index, Index(opened, model=index.model), passages), queries)

    @property
    def text_embedder(self) -> Embedder:
        """The embedder of any text, with the prompt that the model has for it."""
        embedder = self.embedder
        prompt = find_prompt(embedder.opened.sentences, embedder.settings)
        return replace(embedder, text_encoder=replace(embedder.text_encoder, prompt=prompt))

    def encode_window(self, inputs: list[NamedInput]) -> list[tuple[str, EncodedTexts]]:
        """Encode queries, each with its text."""
        for named in inputs:
            if not named.value.strip():
                raise InputError(f"{named.name} is empty; a query needs a word")
        return [(one.value, self.embedder.encode_window([one])) for one in inputs]

    def count(self, encoded: list[tuple[str, EncodedTexts]], computed: object = None) -> TextCounts:
        """Return the statistics of encoded queries."""
        return EncodedTexts.join([tokens for _, tokens in encoded]).counts

    def compute_window(self, encoded: list[tuple[str, EncodedTexts]]) -> list[list[Hit]]:
        """Find the passages that fit each query best."""
        vectors = None
        if self.options.by != "words":
            joined = EncodedTexts.join([tokens for _, tokens in encoded])
            vectors = self.embedder.compute_vectors(joined)
        return self.served.index.find([text for text, _ in encoded], vectors, self.options)
