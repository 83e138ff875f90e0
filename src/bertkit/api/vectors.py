"""Functions of vectors: embed, similarity, search."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack, overload

from bertkit.api.inputs import SeveralTexts, read_texts, take_texts
from bertkit.api.settings import build, takes
from bertkit.base.settings import select
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.rows import Table, name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings, SimilaritySettings
from bertkit.inference.embeddings.similarity import Rows, compare_all
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.inference.stream import TextCounts
from bertkit.retrieval.documents import place_index
from bertkit.retrieval.hits import Hit
from bertkit.retrieval.index import Index
from bertkit.retrieval.older_index import remove_older_index
from bertkit.retrieval.settings import IndexSettings, QuerySettings
from bertkit.tokenization.tokenizer import check_several

if TYPE_CHECKING:
    from bertkit.api.keywords import EmbedKeywords, SearchKeywords, SimilarityKeywords

EmbedderModel = str | Path | Embedder | None


@takes(EmbedderSettings, TableSettings)
def embed(
    texts: Table, *, model: EmbedderModel = None, **settings: "Unpack[EmbedKeywords]"
) -> Vectors:
    """Embed texts: row n of the result belongs to text n.

    Args:
        texts: a list of texts, a data frame, a file, folder or glob by name, or a list of `Path`.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            the model that comes with bertkit.

    Further keyword arguments: fields of `EmbedderSettings`, and of `TableSettings`, which say how
    to read the texts.

    Returns:
        float32 `[texts, features]`.

    Raises:
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> bertkit.embed(["A cat sat down.", "The cat took a seat."]).shape
        (2, 384)
    """
    reading = build(TableSettings, settings)
    embedder = Embedder.take(model, build(EmbedderSettings, settings))
    counts = TextCounts()
    rows = read_texts(texts, reading)
    vectors = embedder(rows, progress=True, counts=counts)
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the texts")
    return vectors


@overload
def similarity(
    first: str,
    second: str,
    *,
    model: EmbedderModel = None,
    **settings: "Unpack[SimilarityKeywords]",
) -> float: ...


@overload
def similarity(
    first: str,
    second: SeveralTexts,
    *,
    model: EmbedderModel = None,
    **settings: "Unpack[SimilarityKeywords]",
) -> Rows: ...


@overload
def similarity(
    first: SeveralTexts,
    second: str | SeveralTexts | None = None,
    *,
    model: EmbedderModel = None,
    **settings: "Unpack[SimilarityKeywords]",
) -> Rows: ...


@takes(SimilaritySettings, TableSettings)
def similarity(
    first: str | SeveralTexts,
    second: str | SeveralTexts | None = None,
    *,
    model: EmbedderModel = None,
    **settings: "Unpack[SimilarityKeywords]",
) -> float | Rows:
    """Compute the similarity of two texts, or of each text of one list to each of another.

    Args:
        first: one text; or a list of texts, a data frame, or the `Path` of a file.
        second: the same; without it, the texts are compared with each other.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            the model that comes with bertkit.
        similarity: cosine, dot, euclidean or manhattan; by default that of the model's folder,
            else cosine. Distances are negated: higher is always more similar.

    Further keyword arguments: fields of `EmbedderSettings`, and of `TableSettings`, which say how
    to read the texts.

    Returns:
        A number for two texts; otherwise `[first, second]`.

    Raises:
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> near = bertkit.similarity("A cat sat down.", "The cat took a seat.")
        >>> near > bertkit.similarity("A cat sat down.", "Stocks fell on Monday.")
        True
        >>> bertkit.similarity(["a cat", "a dog", "a hat"]).shape
        (3, 3)
    """
    chosen, reading = build(SimilaritySettings, settings), build(TableSettings, settings)
    embedder = Embedder.take(model, select(EmbedderSettings, chosen))
    counts = TextCounts()
    rows = embedder(take_texts(first, reading), counts=counts)
    columns = rows if second is None else embedder(take_texts(second, reading), counts=counts)
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the texts")
    name = chosen.similarity or embedder.similarity
    scores = compare_all(name, rows, columns)
    return float(scores[0, 0]) if isinstance(first, str) and isinstance(second, str) else scores


@overload
def search(
    queries: str,
    corpus: Table,
    *,
    model: str | Path | None = None,
    index: str | Path | None = None,
    **settings: "Unpack[SearchKeywords]",
) -> list[Hit]: ...


@overload
def search(
    queries: list[str] | tuple[str, ...],
    corpus: Table,
    *,
    model: str | Path | None = None,
    index: str | Path | None = None,
    **settings: "Unpack[SearchKeywords]",
) -> list[list[Hit]]: ...


@takes(QuerySettings, IndexSettings)
def search(
    queries: str | list[str] | tuple[str, ...],
    corpus: Table,
    *,
    model: str | Path | None = None,
    index: str | Path | None = None,
    **settings: "Unpack[SearchKeywords]",
) -> list[Hit] | list[list[Hit]]:
    """Find the texts that fit a query best, or each of several, best first.

    Files are indexed, and the index is brought up to date at each call, as by `bertkit search`.
    Texts from Python are embedded at each call: for many queries, give them together, or keep them
    in an `Index`.

    Args:
        queries: one query or several.
        corpus: a file, folder or glob by name, or a list of `Path`; a list of texts, or a data
            frame.
        model: a model folder, a run, or the id of a model of the Hub; by default that of the
            index, else the one that comes with bertkit.
        index: the file of the index; by default beside the files, of texts from Python in memory.

    Further keyword arguments: fields of `QuerySettings` and `IndexSettings`.

    Raises:
        BertkitError: as in `Index.update`, `Index.add` and `Index.search`.

    Examples:
        >>> texts = ["Take the wheel off first.", "Boil the eggs for ten minutes."]
        >>> bertkit.search("How do I mend a tire?", texts, top_k=1)[0].text
        'Take the wheel off first.'
    """
    if not isinstance(queries, str):
        check_several(queries)
    names = name_files(corpus)
    place = Path(index) if index else None if names is None else place_index(names)
    if place is not None:
        remove_older_index(place)
    with Index(place, model=model, settings=build(IndexSettings, settings)) as opened:
        if names is None:
            opened.add(corpus)
        else:
            opened.update(names)
        return opened.search(queries, **dict(build(QuerySettings, settings)))
