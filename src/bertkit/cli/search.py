"""`bertkit search`: semantic search over files of texts."""

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import SettingsError
from bertkit.cli.default_model import take_model
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, gather_texts, printable, shorten
from bertkit.retrieval.settings import SearchSettings

if TYPE_CHECKING:
    from bertkit.retrieval.search_index import Hit

SHOWN_CHARS = 160


def search(
    *queries: Words,
    model: str | None = None,
    corpus: list[str],
    file: Path | None = None,
    top_k: int = 5,
    settings: Annotated[SearchSettings, Parameter(name="*")] = SearchSettings(),  # noqa: B008
    index_folder: Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Find the texts of a file, or of a folder, that are most similar to a query.

    The first call embeds the file, row by row, and stores the vectors beside it, under its name
    plus .bertkit; later calls use them until the file changes. The same command resumes interrupted
    work. Empty rows are left out. Rows count from 0, as in the output of `bertkit embed`; texts of
    a folder or of several files are shown with their file and row, from 1, as editors count lines.

    **Examples**

        bertkit search "How do I mend a tire?" --corpus passages.jsonl --top-k 5

        bertkit search all-MiniLM-L6-v2/ "How do I mend a tire?" --corpus passages.jsonl

        bertkit search all-MiniLM-L6-v2/ --corpus faq.csv --text-column answer --file q.txt

        bertkit search "How do I mend a tire?" --corpus docs/

        bertkit search "a refund" --corpus faq.csv --text-column answer --id-column number

        bertkit search run/ --corpus notes.txt "the cat" --index-folder notes-index/

    Args:
        queries: Queries; the first argument may be the model; - reads standard input, one query per
            line.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        corpus: A file of texts: plain text (one per line), JSONL, CSV, TSV or Parquet; or a folder
            or glob of such files. May be given several times.
        file: File with one query per line.
        top_k: Number of results per query.
        settings: The settings of the command.
        index_folder: Folder of the index; by default beside the corpus, or in the common folder of
            several files.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object per query, with whole texts.
    """
    check_standard_output()
    model, queries = take_model(queries, model, "vectors", file=file)
    if top_k < 1:  # before the corpus is embedded
        raise SettingsError(f"top_k must be at least 1, and is {top_k}")
    texts = [text for _, text in gather_texts(queries, file)]
    from bertkit.retrieval.search_index import SearchIndex

    index = SearchIndex.open(
        model, corpus, settings, index_folder=index_folder, device=device, revision=revision
    )
    for query, hits in zip(texts, index.search(texts, top_k), strict=True):
        if json:
            found = {"query": query, "hits": [asdict(hit) for hit in hits]}
            print(json_module.dumps(found, ensure_ascii=False))
        else:
            _show(query, hits)


def _show(query: str, hits: "list[Hit]") -> None:
    print(printable(query))
    for hit in hits:
        shown = shorten(printable(" ".join(hit.text.split())), SHOWN_CHARS)
        name = f"row {hit.row}" if hit.id is None else printable(hit.id)
        print(f"  {hit.score:7.4f}  {name:<12} {shown}")
