"""Functions of vectors: embed, compare and search texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast, overload

from bertkit.api.inputs import (
    SeveralTexts,
    hold_rows,
    list_ids,
    list_texts,
    name_files,
    read_texts,
    take_texts,
)
from bertkit.api.interrupts import ends_in_one_line
from bertkit.api.kept import LAST_LOADED, take_object
from bertkit.api.settings import build, divide, takes_settings
from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.base.wording import pluralize
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.hub import resolve_model
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.text_files import name_beside
from bertkit.embeddings.embedder import Embedder, Vectors
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.embeddings.similarity import Rows, compare_all
from bertkit.embeddings.similarity_names import Similarity
from bertkit.reports.notebook import ResultList
from bertkit.retrieval.search_index import Hit, SearchIndex
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.tokenization.tokenizer import check_several


@ends_in_one_line
@takes_settings(EmbedderSettings, TableSettings)
def embed(
    texts: Table,
    *,
    model: str | Path | Embedder | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> Vectors:
    """Embed texts: row n of the result belongs to text n.

    Args:
        texts: a list of texts, a data frame, or a file, folder or glob by name, or several.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            the model that comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `EmbedderSettings`, and of `TableSettings`, which say how to read the
            texts.

    Returns:
        float32 `[texts, features]`.

    Raises:
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> bertkit.embed(["A cat sat down.", "The cat took a seat."]).shape
        (2, 384)
    """
    parts = divide({"reading": TableSettings, "embedding": EmbedderSettings}, settings)
    chosen = build(EmbedderSettings, parts["embedding"], "embed")
    embedder = _take_embedder(model, chosen, device=device, revision=revision)
    reading = build(TableSettings, parts["reading"], "embed")
    return embedder.encode(read_texts(texts, reading), progress=True)


def _take_embedder(
    model: str | Path | Embedder | None,
    settings: EmbedderSettings,
    *,
    device: str,
    revision: str | None,
) -> Embedder:
    """Load an embedder, or take that of the last call, or the one that is given."""
    if isinstance(model, Embedder) and settings != EmbedderSettings():
        raise SettingsError("a loaded Embedder has its settings; give them to Embedder.load")
    place = model if model is not None else find_bundled("vectors")
    return take_object(Embedder, place, settings, revision=revision, device=device)


@overload
def similarity(first: str, second: str, **settings: Any) -> float: ...


@overload
def similarity(first: str, second: SeveralTexts, **settings: Any) -> Rows: ...


@overload
def similarity(
    first: SeveralTexts, second: str | SeveralTexts | None = None, **settings: Any
) -> Rows: ...


@ends_in_one_line
@takes_settings(EmbedderSettings)
def similarity(
    first: str | SeveralTexts,
    second: str | SeveralTexts | None = None,
    *,
    model: str | Path | Embedder | None = None,
    similarity: Similarity | None = None,
    text_column: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> float | Rows:
    """Compute the similarity of two texts, or of each text of one list to each of another.

    Args:
        first: one text; or a list of texts, a data frame, or the `Path` of a file.
        second: the same; without it, the texts are compared with each other.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            the model that comes with bertkit.
        similarity: cosine, dot, euclidean or manhattan; by default that of the model's folder,
            else cosine. Distances are negated: higher is always more similar.
        text_column: column of the texts, if they are rows or a file has several.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `EmbedderSettings`.

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
    chosen = build(EmbedderSettings, settings, "similarity")
    embedder = _take_embedder(model, chosen, device=device, revision=revision)
    reading = TableSettings(text_column=text_column)
    rows = embedder.encode(take_texts(first, reading))
    columns = rows if second is None else embedder.encode(take_texts(second, reading))
    name = similarity or cast("Similarity", embedder.similarity)
    scores = compare_all(name, rows, columns)
    return float(scores[0, 0]) if isinstance(first, str) and isinstance(second, str) else scores


@overload
def search(queries: str, corpus: Table, **settings: Any) -> list[Hit]: ...


@overload
def search(
    queries: list[str] | tuple[str, ...], corpus: Table, **settings: Any
) -> list[list[Hit]]: ...


@ends_in_one_line
@takes_settings(SearchSettings)
def search(
    queries: str | list[str] | tuple[str, ...],
    corpus: Table,
    *,
    model: str | Path | None = None,
    top_k: int = 5,
    index_folder: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> list[Hit] | list[list[Hit]]:
    """Find the texts most similar to a query, or to each of several, best first.

    A file, a folder or several files are indexed once, beside them, as by `bertkit search`. Texts
    from Python are embedded at each call: for many queries, give them together. Empty texts are
    left out.

    Args:
        queries: one query or several.
        corpus: a file, folder or glob by name, or several; a list of texts, or a data frame.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        top_k: results per query.
        index_folder: folder of a file's index; by default beside the file.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `SearchSettings`.

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
    chosen = build(SearchSettings, settings, "search")
    place = model if model is not None else find_bundled("vectors")
    names = name_files(corpus)
    if names is not None:
        index = _open_index(
            resolve_model(place, revision=revision), names, chosen, index_folder, device
        )
        found = index.search(asked, top_k)
    else:
        rows = _number_rows(cast("Table", hold_rows(corpus)), chosen)
        limited = EmbedderSettings(**chosen.model_dump(include=set(EmbedderSettings.model_fields)))
        embedder = _take_embedder(place, limited, device=device, revision=revision)
        found = _search_rows(embedder, asked, rows, chosen, top_k)
    return found[0] if isinstance(queries, str) else found


def _open_index(
    model: Path, names: list[str], settings: SearchSettings, folder: str | Path | None, device: str
) -> SearchIndex:
    """Open the index of files, or take that of the last call if it is to be kept."""
    corpus = Path(names[0])
    if settings.rebuild or len(names) > 1 or not corpus.exists():  # a glob
        return SearchIndex.open(model, names, settings, index_folder=folder, device=device)
    place = Path(folder or name_beside(corpus))
    return LAST_LOADED.take(
        SearchIndex.open,
        [model, corpus],
        settings,
        made=[place],
        index_folder=place,
        device=device,
    )


def _number_rows(table: Table, settings: SearchSettings) -> list[Hit]:
    """Return the rows with text as hits without a score; announce how many have none."""
    texts, ids = list_texts(table, settings.text_column), None
    if settings.id_column is not None:
        ids = list_ids(table, settings.id_column)
    rows = [
        Hit(0.0, row, text, None if ids is None else ids[row])
        for row, text in enumerate(texts)
        if text.replace("\0", "").strip()
    ]
    if num_blank := len(texts) - len(rows):
        announce(f"{pluralize(num_blank, 'empty row')} left out")
    return rows


def _search_rows(
    embedder: Embedder, queries: list[str], rows: list[Hit], settings: SearchSettings, top_k: int
) -> list[list[Hit]]:
    similarity = settings.similarity or cast("Any", embedder.similarity)
    texts = [row.text for row in rows]
    index = VectorIndex(embedder.encode(texts, progress=True), similarity)
    if settings.index == "approximate":
        index = index.approximate()
    scores, places = index.search(embedder.encode(queries), top_k)
    return ResultList(
        ResultList(replace(rows[place], score=score) for score, place in zip(*each, strict=True))
        for each in zip(scores.tolist(), places.tolist(), strict=True)
    )
