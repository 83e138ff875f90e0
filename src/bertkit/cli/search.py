"""`bertkit search`: semantic search over files of texts."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import check_standard_output, print_result
from bertkit.cli.texts import NamedModel, Words, gather_texts, printable, shorten, take_model
from bertkit.inference.embeddings.settings import WordVectorSettings
from bertkit.reports.text import format_number
from bertkit.retrieval.settings import SearchSettings

if TYPE_CHECKING:
    from bertkit.inference.embeddings.word_vectors import Neighbors, WordVectors
    from bertkit.retrieval.search_index import Hit

SHOWN_CHARS = 160


def search(
    *queries: Words,
    model: NamedModel = None,
    corpus: list[str],
    file: Path | None = None,
    top_k: int = 5,
    settings: SearchSettings = SearchSettings(),
    index_folder: Path | None = None,
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
        corpus: A file of texts: plain text (one per line), JSONL, CSV, TSV or Parquet; or a folder
            or glob of such files. May be given several times.
        file: File with one query per line.
        top_k: Number of results per query.
        index_folder: Folder of the index; by default beside the corpus, or in the common folder of
            several files.
        json: Print one JSON object per query, with whole texts.
    """
    check_standard_output()
    model, queries = take_model(queries, model, "vectors", file=file)
    if top_k < 1:  # before the corpus is embedded
        raise SettingsError(f"top_k must be at least 1, and is {top_k}")
    texts = [text for _, text in gather_texts(queries, file)]
    from bertkit.retrieval.search_index import SearchIndex

    index = SearchIndex.open(model, corpus, settings, index_folder=index_folder)
    for query, hits in zip(texts, index.search(texts, top_k), strict=True):
        facts = {"query": query, "hits": list(hits)}
        print_result(hits, partial(describe_hits, query), json=json, facts=facts)


def describe_hits(query: str, hits: "list[Hit]") -> str:
    """List the hits of a query."""
    lines = [printable(query)]
    for hit in hits:
        shown = shorten(printable(" ".join(hit.text.split())), SHOWN_CHARS)
        name = f"row {hit.row}" if hit.id is None else printable(hit.id)
        lines.append(f"  {format_number(hit.score):>7}  {name:<12} {shown}")
    return "\n".join(lines)


def nearest(
    *words: Words,
    model: NamedModel = None,
    top_k: int = 10,
    settings: WordVectorSettings = WordVectorSettings(),
    json: bool = False,
) -> None:
    """List the entries of a vocabulary that are nearest to a word by cosine similarity.

    At layer 0, vectors are the word embeddings. At a higher layer, each entry goes through the
    model alone, as [CLS] entry [SEP], which takes far longer; this is done once per call, for all
    words, and isn't cached.

    The model may also be a folder of `bertkit study skip-gram` or another network of the studies,
    which has word embeddings alone.

    A word of several pieces gets the mean of their vectors; the pieces are printed. The word itself
    and its pieces are excluded from the answer.

    **Examples**

        bertkit nearest bank

        bertkit nearest run/ bank --top-k 5

        bertkit nearest google-bert/bert-base-uncased bank river --layer -1

        bertkit nearest bert-base/ run --all-entries --json

    Args:
        words: Words or entries of the vocabulary; each gets its own list. The first may be the
            model.
        top_k: Number of neighbors per word.
        json: Print one JSON object per word.
    """
    vectors, words = _load_vectors(words, model, settings, "give at least one")
    found = [vectors.nearest(word, top_k=top_k) for word in words]
    for neighborhood in found:
        print_result(neighborhood, describe_neighbors, json=json)


def _load_vectors(
    words: tuple[str, ...], model: str | None, settings: WordVectorSettings, advice: str
) -> "tuple[WordVectors, tuple[str, ...]]":
    """Return the vectors of a vocabulary, and the arguments that are words."""
    check_standard_output()
    model, words = take_model(words, model, "vectors")
    if not words:
        raise InputError(f"there is no word; {advice}")
    from bertkit.inference.embeddings.word_vectors import WordVectors

    return WordVectors.load(model, settings), replace_surrogates(words)


def describe_neighbors(found: "Neighbors") -> str:
    """List the neighbors of a word or a sum of words."""
    named = [("+", word) for word in found.plus] + [("-", word) for word in found.minus]
    lines = [" ".join(f"{sign} {printable(word.word)}" for sign, word in named).removeprefix("+ ")]
    lines += [
        f"  {printable(word.word)} is the mean of {printable(' '.join(word.pieces))}"
        for _, word in named
        if len(word.pieces) > 1
    ]
    lines += [
        f"  {format_number(neighbor.similarity):>6} {printable(neighbor.token)}"
        for neighbor in found.neighbors
    ]
    return "\n".join(lines)


def analogy(
    *words: Words,
    model: NamedModel = None,
    minus: list[str] | None = None,
    top_k: int = 10,
    settings: WordVectorSettings = WordVectorSettings(),
    json: bool = False,
) -> None:
    """Solve a word analogy: kitten + dog - puppy.

    Normalizes the vectors to length 1, adds those of the words, subtracts those of --minus, and
    lists the entries of the vocabulary with the highest cosine to the sum (3CosAdd). The given
    words and their pieces are excluded from the answer, as is usual; without that, the answer is
    often one of them.

    Layers, and words of several pieces, are handled as by `bertkit nearest`.

    **Examples**

        bertkit analogy kitten dog --minus puppy

        bertkit analogy run/ kitten dog --minus puppy

        bertkit analogy google-bert/bert-base-uncased king woman --minus man --top-k 5 --json

    Args:
        words: Words to add; the first argument may be the model.
        minus: A word to subtract; repeat the flag for more.
        top_k: Number of entries.
        json: Print one JSON object.
    """
    vectors, words = _load_vectors(words, model, settings, "give at least one to add")
    without = replace_surrogates(minus or ())
    print_result(vectors.nearest(words, without, top_k=top_k), describe_neighbors, json=json)
