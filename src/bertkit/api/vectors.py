"""Functions of vectors: embed, similarity, search."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, overload

from bertkit.api.inputs import SeveralTexts, list_rows, read_texts, take_texts
from bertkit.api.settings import build, takes
from bertkit.base.errors import pluralize
from bertkit.base.progress import announce
from bertkit.base.settings import select
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.rows import Table, name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.text_files import name_beside
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings, SimilaritySettings
from bertkit.inference.embeddings.similarity import Rows, compare_all
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.inference.kept import LAST_LOADED
from bertkit.inference.stream import TextCounts
from bertkit.reports.notebook import ResultList
from bertkit.retrieval.search_index import RowHit, SearchIndex
from bertkit.retrieval.settings import ResultSettings, SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
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
    **settings: "Unpack[SearchKeywords]",
) -> list[RowHit]: ...


@overload
def search(
    queries: list[str] | tuple[str, ...],
    corpus: Table,
    *,
    model: str | Path | None = None,
    **settings: "Unpack[SearchKeywords]",
) -> list[list[RowHit]]: ...


@takes(ResultSettings, SearchSettings)
def search(
    queries: str | list[str] | tuple[str, ...],
    corpus: Table,
    *,
    model: str | Path | None = None,
    **settings: "Unpack[SearchKeywords]",
) -> list[RowHit] | list[list[RowHit]]:
    """Find the texts most similar to a query, or to each of several, best first.

    A file, a folder or several files are indexed once, beside them, as by `bertkit search`. Texts
    from Python are embedded at each call: for many queries, give them together. Empty texts are
    left out.

    Args:
        queries: one query or several.
        corpus: a file, folder or glob by name, or a list of `Path`; a list of texts, or a data
            frame.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        top_k: results per query.
        index_folder: folder of a file's index; by default beside the file.

    Further keyword arguments: fields of `SearchSettings`.

    Raises:
        BertkitError: as in `SearchIndex.open` and `SearchIndex.search`.

    Examples:
        >>> texts = ["Take the wheel off first.", "Boil the eggs for ten minutes."]
        >>> bertkit.search("How do I mend a tire?", texts, top_k=1)[0].text
        'Take the wheel off first.'
    """
    if not isinstance(queries, str):
        check_several(queries)
    asked = [queries] if isinstance(queries, str) else list(queries)
    wanted, chosen = build(ResultSettings, settings), build(SearchSettings, settings)
    names = name_files(corpus)
    if names is not None:
        folder = Embedder.find(model, chosen.revision).path
        chosen = chosen.model_copy(update={"revision": None})
        found = _open_index(folder, names, chosen, wanted.index_folder).search(asked, wanted.top_k)
    else:
        rows = _number_rows(corpus, chosen)
        embedder = Embedder.take(model, select(EmbedderSettings, chosen))
        found = _search_rows(embedder, asked, rows, chosen, wanted.top_k)
    return found[0] if isinstance(queries, str) else found


def _open_index(
    model: Path, names: list[str], settings: SearchSettings, folder: str | Path | None
) -> SearchIndex:
    """Open the index of files, or take that of the last call if it is to be kept."""
    corpus = Path(names[0])
    if settings.overwrite or len(names) > 1 or not corpus.exists():  # a glob
        return SearchIndex.open(model, names, settings, index_folder=folder)
    place = Path(folder or name_beside(corpus))
    return LAST_LOADED.take(
        SearchIndex.open, [model, corpus], settings, made=[place], index_folder=place
    )


def _number_rows(table: Table, settings: SearchSettings) -> list[RowHit]:
    """Return the rows with text as hits without a score; announce how many have none."""
    texts = list(list_rows(table, settings.text_column, settings.id_column))
    rows = [
        RowHit(0.0, row, text, name)
        for row, (text, name) in enumerate(texts)
        if text.replace("\0", "").strip()
    ]
    if num_blank := len(texts) - len(rows):
        announce(f"{pluralize(num_blank, 'empty row')} left out")
    return rows


def _search_rows(
    embedder: Embedder, queries: list[str], rows: list[RowHit], settings: SearchSettings, top_k: int
) -> list[list[RowHit]]:
    similarity = settings.similarity or embedder.similarity
    texts = [row.text for row in rows]
    counts = TextCounts()
    index = VectorIndex(embedder(texts, progress=True, counts=counts), similarity)
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the corpus")
    if settings.index == "approximate":
        index = index.approximate()
    scores, places = index.search(embedder(queries), top_k)
    return ResultList(
        ResultList(replace(rows[place], score=score) for score, place in zip(*each, strict=True))
        for each in zip(scores.tolist(), places.tolist(), strict=True)
    )
