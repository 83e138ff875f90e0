"""Search as a pipeline: queries in, the texts of a corpus out that are most similar to each."""

from dataclasses import dataclass, field, replace
from typing import Self

from pydantic import Field

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings
from bertkit.inference.embeddings.embedder import Embedder, find_prompt
from bertkit.inference.pipeline import NamedInput, Pipeline
from bertkit.inference.stream import EncodedTexts, TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.retrieval.search_index import RowHit, SearchIndex
from bertkit.retrieval.settings import SearchSettings

MAX_HITS = 1000  # of a query


class SearchOptions(Settings):
    """Options of search."""

    top_k: int = Field(default=5, ge=1, le=MAX_HITS, description="Number of texts.")


@dataclass(frozen=True)
class Searcher(Pipeline[str, list[RowHit]]):
    """Finds texts of a corpus by their meaning."""

    index: SearchIndex
    options: SearchOptions = field(default_factory=SearchOptions)

    @classmethod
    def build(cls, opened: OpenModel, loading: SearchSettings, corpus: str = "") -> Self:
        """Open the index of a corpus, or build it."""
        settings = loading.model_copy(update={"revision": None})  # the model is open
        return cls(SearchIndex.open(opened.path, corpus, settings))

    @property
    def text_embedder(self) -> Embedder:
        """The embedder of the queries, with the prompt that the model has for any text."""
        embedder = self.index.embedder
        prompt = find_prompt(embedder.opened.sentences, embedder.settings)
        return replace(embedder, text_encoder=replace(embedder.text_encoder, prompt=prompt))

    def encode_window(self, inputs: list[NamedInput]) -> EncodedTexts:
        """Encode queries."""
        for named in inputs:
            if not named.value.strip():
                raise InputError(f"{named.name} is empty; a query needs a word")
        return self.index.embedder.encode_window(inputs)

    def count(self, encoded: EncodedTexts, computed: object = None) -> TextCounts:
        """Return the statistics of encoded queries."""
        return encoded.counts

    def compute_window(self, encoded: EncodedTexts) -> list[list[RowHit]]:
        """Find the texts that are most similar to each query."""
        vectors = self.index.embedder.compute_vectors(encoded)
        return self.index.find(vectors, self.options.top_k)
