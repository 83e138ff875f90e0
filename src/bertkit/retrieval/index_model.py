"""What computes the vectors of an index: a model and its prompts, or functions of a caller."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from pydantic import JsonValue

from bertkit.base.errors import SettingsError
from bertkit.base.settings import select, validate
from bertkit.checkpoints.bundled import PACKAGE, describe_name
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.embeddings.settings import EmbedderSettings, Similarity
from bertkit.inference.stream import TextCounts
from bertkit.reports.text import show
from bertkit.retrieval.index_file import IndexFile
from bertkit.retrieval.settings import IndexSettings
from bertkit.retrieval.vector_file import Identity, Vectors, VectorsFingerprint, keep_precision

if TYPE_CHECKING:
    from bertkit.inference.embeddings.embedder import Embedder

# Settings that an index keeps; the others say how texts are read, and on what is computed.
OF_THE_FILE = (
    IndexSettings.model_fields.keys() - CorpusSettings.model_fields.keys() - {"device", "engine"}
)
Compute = Callable[[list[str]], Vectors]


@dataclass(frozen=True)
class IndexModel:
    """Computes vectors of passages and of queries; no part of it needs bertkit's own models.

    Attributes:
        identity: everything that vectors depend on; `dimension` is a must.
        similarity: of queries and passages.
        embed_passages: texts to float32 vectors `[texts, dimension]`.
        embed_queries: the same for queries.
        measure: the number of tokens of a text.
        passage_tokens: the most tokens of a passage.
        passage_overlap: the share of a passage that the next one repeats.
        stored: model and settings, by which an index loads it again; None if it can't.
        embedders: of passages and of queries, if it is a model of bertkit.
        counts: of the passages that were embedded.
    """

    identity: Identity
    similarity: Similarity
    embed_passages: Compute
    embed_queries: Compute
    measure: Callable[[str], int]
    passage_tokens: int
    passage_overlap: float = 0.125
    stored: dict[str, JsonValue] | None = None
    embedders: "tuple[Embedder, Embedder] | None" = None
    counts: TextCounts = field(default_factory=TextCounts)

    @classmethod
    def load(cls, model: "str | Path | Embedder | None", settings: IndexSettings) -> Self:
        """Load a model, by default the one that comes with bertkit, or take one that is loaded."""
        from bertkit.inference.embeddings.embedder import (
            PASSAGE_PROMPTS,
            QUERY_PROMPTS,
            Embedder,
            find_prompt,
            with_prompt,
        )

        chosen = select(EmbedderSettings, settings)
        chosen = chosen.model_copy(update={"prompt": None, "prompt_name": None})
        base = Embedder.take(model, chosen)
        asked = settings.prompt
        if settings.prompt_name is not None:
            asked = find_prompt(base.opened.sentences, select(EmbedderSettings, settings))
        passages = with_prompt(base, PASSAGE_PROMPTS, settings.passage_prompt)
        queries, encoder = with_prompt(base, QUERY_PROMPTS, asked), passages.text_encoder

        def measure(text: str) -> int:
            shown = text.lower() if encoder.lowercase else text
            return len(encoder.tokenizer.piece_ids([shown])[0])

        counts = TextCounts()
        num_special = encoder.tokenizer.num_special()
        room = max(1, encoder.max_length - num_special - measure(encoder.prompt))
        size, overlap = min(settings.passage_tokens or room, room), settings.passage_overlap
        return cls(
            identity=passages.identity | {"passages": f"{size} tokens, overlap {overlap:g}"},
            similarity=settings.similarity or base.similarity,
            embed_passages=lambda texts: passages(texts, counts=counts),
            embed_queries=queries,
            measure=measure,
            passage_tokens=size,
            passage_overlap=overlap,
            stored=_describe(base, settings),
            embedders=(passages, queries),
            counts=counts,
        )

    def check(self, found: Identity, path: Path | None) -> None:
        """Raise SettingsError if an index has vectors of another model or other settings."""
        earlier = VectorsFingerprint(embedding=found, input=None)
        changes = earlier.list_changes(VectorsFingerprint(embedding=self.identity, input=None))
        if not changes:
            return
        model = describe_name(str(self.identity["model"]))
        vectors = f"{model} with other settings"  # under whatever name
        if found.get("model_sha256") != self.identity.get("model_sha256"):
            vectors = f"{describe_name(str(found.get('model')))}, not of {model}"
        raise SettingsError(
            f"{path or 'the index'} has vectors of {show(vectors)} ({'; '.join(changes)}); use the"
            " earlier model and settings, or make another index"
        )


def _describe(embedder: "Embedder", settings: IndexSettings) -> dict[str, JsonValue]:
    """Return what `IndexModel.load` needs to load the same again."""
    opened = embedder.opened
    is_bundled = opened.path.parent.name == PACKAGE
    path = opened.name if opened.is_from_hub else str(opened.path.resolve())
    kept: dict[str, JsonValue] = {"model": None if is_bundled else path}
    for each in (embedder.settings, settings):
        kept |= each.model_dump(mode="json", include=set(OF_THE_FILE), exclude_defaults=True)
    return kept


def load_model(
    file: IndexFile, given: "str | Path | Embedder | IndexModel | None", settings: IndexSettings
) -> IndexModel:
    """Load the model of an index, or the one that was given, which must be the same."""
    found = cast("Identity | None", file.read_fact("embedding"))
    stored = cast("dict[str, JsonValue] | None", file.read_fact("settings"))
    if isinstance(given, IndexModel):
        model = given
    elif found and stored is None and given is None:
        raise SettingsError(
            f"{file.path} has vectors of {show(str(found.get('model')))}, which another program"
            " computed; open it there"
        )
    else:
        is_named = isinstance(given, str | Path | None)  # an `Embedder` has its settings
        kept = {**stored} if stored and is_named else {}
        usual = cast("str | None", kept.pop("model", None))
        asked = kept | settings.model_dump(exclude_defaults=True)
        chosen = validate(IndexSettings, asked, f"settings of {file.path}")
        model = IndexModel.load(given or usual, chosen)
        if found and is_named and found.get("precision") != model.identity["precision"]:
            model = IndexModel.load(given or usual, keep_precision(chosen, found))
    if found:
        model.check(found, file.path)
    return model
