"""Functions that use a model: predictions, metrics, vectors, search, a view of the attention."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast, overload

from bertkit.api.inputs import hold_rows, list_ids, list_texts, name_files
from bertkit.api.kept import LAST_LOADED, take_model
from bertkit.api.settings import build, divide, takes_settings
from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce, show_progress
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.evaluate.held_out import HeldOutResult, evaluate_held_out
from bertkit.batch_jobs.evaluate.run import EvaluatedModel, EvaluateResult
from bertkit.batch_jobs.evaluate.run import evaluate as run_evaluate
from bertkit.batch_jobs.evaluate.settings import EvaluateSettings
from bertkit.batch_jobs.predict.run import answer_file
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.hub.resolve import resolve_model
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings, TableSettings
from bertkit.data.tables.text_files import name_beside, open_text_files
from bertkit.embeddings.embedder import Embedder, Vectors
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.inference.predictor import Predictor
from bertkit.interpret.page.attention_view import AttentionView
from bertkit.interpret.page.settings import ViewSettings
from bertkit.retrieval.search_index import Hit, SearchIndex
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.scoring.minimal_pairs import PairsResult, judge_pairs
from bertkit.scoring.text_scorer import TextScorer
from bertkit.tasks.column_settings import choose_columns
from bertkit.tasks.table import TASKS

Model = str | Path | Predictor[Any, Any, Any]

COLUMNS = choose_columns(*(entry.settings for entry in TASKS.values()))


@takes_settings(PredictSettings, COLUMNS)
def predict(model: Model, data: Table, **settings: Any) -> list[Any]:
    """Predict the rows of a file, a data frame or a list; prediction n belongs to row n.

    Args:
        model: a fine-tuned model, its folder, or the id of a model of the Hub.
        data: rows, with or without labels, or a file by name.
        settings: fields of `PredictSettings`, and names of columns that differ from those of the
            training data.

    Returns:
        Predictions, such as `Classification`, as the model's predictor returns them.

    Raises:
        InputError: a row can't be read, or columns are missing.
        BertkitError: the model can't be loaded.
    """
    predictor = model if isinstance(model, Predictor) else take_model(Predictor.load, model)
    parts = divide({"columns": COLUMNS, "predict": PredictSettings}, settings)
    chosen = build(PredictSettings, parts["predict"], "predict")
    columns = build(COLUMNS, parts["columns"], "predict")
    answers = answer_file(predictor, cast("Table", hold_rows(data)), chosen, columns)
    with show_progress("Predicting", None) as progress:
        return [row.prediction for row in answers.read(progress)]


@takes_settings(EvaluateSettings, COLUMNS)
def evaluate(
    model: Model,
    data: Table | None = None,
    *,
    minimal_pairs: str | Path | None = None,
    held_out: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> EvaluateResult | PairsResult | HeldOutResult:
    """Evaluate a model on labeled data, on minimal pairs or on held-out text.

    Args:
        model: a fine-tuned model, its folder, or, for text, a pre-trained one.
        data: labeled rows, or a file by name.
        minimal_pairs: a file of pairs, as `bertkit evaluate --minimal-pairs` reads it.
        held_out: a folder of shards with held-out text.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `EvaluateSettings`, and names of columns that differ from those of the
            training data.

    Returns:
        The result; that of labeled data has `metrics` and `evaluation`.

    Raises:
        SettingsError: not exactly one of data, minimal pairs and held-out text is given.
        BertkitError: as in `bertkit.batch_jobs.evaluate.run.evaluate`.
    """
    if sum(each is not None for each in (data, minimal_pairs, held_out)) != 1:
        raise SettingsError("give one of: labeled data, minimal_pairs, held_out")
    parts = divide({"columns": COLUMNS, "evaluate": EvaluateSettings}, settings)
    chosen = build(EvaluateSettings, parts["evaluate"], "evaluate")
    if data is not None:
        columns = build(COLUMNS, parts["columns"], "evaluate")
        named = EvaluatedModel(model, device, revision)
        return run_evaluate(named, cast("Table", hold_rows(data)), chosen, columns)
    if isinstance(model, Predictor):
        raise SettingsError("minimal pairs and held-out text are for pre-trained models; name one")
    if held_out is not None:
        return evaluate_held_out(str(model), Path(held_out), device, revision=revision)
    scorer = TextScorer.load(model, device, revision=revision)
    reading = RecordSettings(**chosen.model_dump(include=set(RecordSettings.model_fields)))
    return judge_pairs(scorer, cast("str", minimal_pairs), reading)


@takes_settings(EmbedderSettings)
def embed(
    texts: Table,
    *,
    model: str | Path | Embedder | None = None,
    text_column: str | None = None,
    encoding: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> Vectors:
    """Embed texts: row n of the result belongs to text n.

    Args:
        texts: a list of texts, a data frame, or a file, folder or glob by name, or several.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.
        encoding: of a file of texts, such as latin-1; by default UTF-8.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `EmbedderSettings`.

    Returns:
        float32 `[texts, features]`.

    Raises:
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> bertkit.embed(["A cat sat down.", "The cat took a seat."]).shape
        (2, 384)
    """
    embedder = _take_embedder(
        model, build(EmbedderSettings, settings, "embed"), device=device, revision=revision
    )
    reading = build(TableSettings, {"text_column": text_column, "encoding": encoding}, "embed")
    return embedder.encode(_read_texts(texts, reading), progress=True)


def _take_embedder(
    model: str | Path | Embedder | None,
    settings: EmbedderSettings,
    *,
    device: str,
    revision: str | None,
) -> Embedder:
    """Load an embedder, or take that of the last call, or the one that is given."""
    if not isinstance(model, Embedder):
        place = model if model is not None else find_bundled("vectors")
        return take_model(Embedder.load, place, settings, revision=revision, device=device)
    if settings != EmbedderSettings():
        raise SettingsError("an Embedder has its settings; give them to Embedder.load")
    return model


def _read_texts(texts: Table, reading: TableSettings) -> list[str]:
    """Return the texts of a file or of rows."""
    names = name_files(texts)
    if names is None:
        return list_texts(texts, reading.text_column)
    return [row.text for row in open_text_files(names, reading).rows()]


@overload
def search(queries: str, corpus: Table, **settings: Any) -> list[Hit]: ...


@overload
def search(
    queries: list[str] | tuple[str, ...], corpus: Table, **settings: Any
) -> list[list[Hit]]: ...


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
    return [
        [replace(rows[place], score=score) for score, place in zip(*each, strict=True)]
        for each in zip(scores.tolist(), places.tolist(), strict=True)
    ]


@takes_settings(ViewSettings)
def view(
    text: str,
    pair: str | None = None,
    *,
    model: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> AttentionView:
    """Show a model's attention for a text: a page in a notebook; `.write(path)` makes a file.

    Args:
        text: the text.
        pair: a second text; for an encoder-decoder, the target text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        settings: fields of `ViewSettings`.

    Raises:
        BertkitError: as in `AttentionView.of`.
    """
    chosen = build(ViewSettings, settings, "view")
    place = model if model is not None else find_bundled("words")
    return AttentionView.of(place, text, pair, chosen, device=device, revision=revision)
