"""Commands that find texts: similarity, search, rerank, nearest."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.base.settings import check_count, replace_surrogates
from bertkit.cli.index import Where, open_index
from bertkit.cli.output import print_result
from bertkit.cli.texts import (
    NamedModel,
    TextFile,
    Words,
    choose_model,
    list_problems,
    list_texts,
    printable,
)
from bertkit.data.problems import announce_unknown, append_problems
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.embeddings.settings import SimilaritySettings, WordVectorSettings
from bertkit.inference.settings import EngineSettings
from bertkit.reports.text import format_number, make_legible, shorten
from bertkit.retrieval.settings import IndexSettings, QuerySettings
from bertkit.tasks.settings import TOP_K

TopK = Annotated[int, Parameter(help=TOP_K)]
MAX_TEXTS, SHOWN_CHARS = 1000, 160
MINUS_SIGN = "\u2212"
OPERATOR = re.compile(rf"(?:^|\s+)([+{MINUS_SIGN}-])(?=\s|$)")


def similarity(
    *texts: Words,
    model: NamedModel = None,
    file: TextFile = None,
    settings: SimilaritySettings = SimilaritySettings(),
    json: bool = False,
) -> None:
    """Compute the similarity of two texts, or of each pair of several texts.

    **Examples**

        bertkit similarity "A cat sat down." "The dog lay on the floor."

        bertkit similarity "A cat sat down." "The dog lay on the floor." --model all-MiniLM-L6-v2/

        bertkit similarity --file sentences.txt --json

        bertkit similarity "a cat" "a dog" --model run/ --similarity euclidean --pooling cls

    Args:
        texts: Two or more texts; - alone reads standard input.
        json: Print one JSON object.
    """
    check_standard_output()
    model = choose_model(model, "vectors", texts, file)
    given = list_texts(texts, file)
    if not 2 <= len(given) <= MAX_TEXTS:
        raise InputError(
            f"got {pluralize(len(given), 'text')}; give two, or up to {MAX_TEXTS:,} to compare all"
            " pairs; for more, use `bertkit search`"
        )
    from bertkit.inference.embeddings.embedder import Embedder
    from bertkit.inference.embeddings.similarity import compare_all
    from bertkit.inference.stream import TextCounts

    embedder = Embedder.load(model, settings)
    counts = TextCounts()
    vectors = embedder(given, counts=counts)
    announce_unknown(counts.unknown_tokens, counts.text_tokens)
    chosen = settings.similarity or embedder.similarity
    scores = compare_all(chosen, vectors, vectors).tolist()
    facts = {"similarity": chosen, "texts": given, "scores": scores}
    print_result(scores, describe_scores, json=json, facts=facts)


def describe_scores(scores: list[list[float]]) -> str:
    """Show the similarity of two texts, or a table of all."""
    if len(scores) == 2:
        return format_number(scores[0][1])
    return "\n".join(" ".join(f"{format_number(one):>7}" for one in row) for row in scores)


def search(
    *queries: Words,
    model: NamedModel = None,
    corpus: Annotated[list[str] | None, Parameter(negative="")] = None,
    index: Path | None = None,
    file: TextFile = None,
    where: Where = None,
    wanted: QuerySettings = QuerySettings(),
    settings: IndexSettings = IndexSettings(),
    json: bool = False,
) -> None:
    """Find the texts of a folder or file, or of an index, that answer a query best.

    Texts are found by their words and by their meaning. The first search of a --corpus embeds its
    texts and stores them in an index, one file beside it, under its name plus .bertkit; later
    searches first take over what changed. --index alone searches what `bertkit index` stored.

    A passage of a plain text or Markdown file is shown with the line on which it begins, a row of a
    table with its id, or else its file and number, from 1.

    **Examples**

        bertkit search "How do I mend a tire?" --corpus notes/

        bertkit search "a refund" --corpus faq.csv --text-column answer --id-column number

        bertkit search --index notes.bertkit "a tire" --where "lang = 'en'" --rerank reranker/

        bertkit search --file questions.txt --corpus passages.jsonl --json

    Args:
        queries: Queries; - alone reads standard input.
        corpus: A file of texts: plain text, Markdown, JSONL, CSV, TSV or Parquet; or a folder or
            glob of such files. May be given several times.
        index: File of the index; by default beside the corpus, or in the common folder of several
            files.
        json: Print one JSON object per query, with whole texts.
    """
    check_standard_output()
    texts = list_texts(queries, file)
    from bertkit.retrieval.documents import place_index

    place = index or (place_index(corpus) if corpus else None)
    if place is None:
        raise SettingsError("name what to search: texts by --corpus, or an index by --index")
    with open_index(place, model, settings, creates=bool(corpus)) as opened:
        if corpus and (changes := opened.update(corpus)):
            announce(make_legible(f"{place}: {changes.describe()}"))
        found = opened.search(texts, **dict(wanted) | {"where": where})
    for query, hits in zip(texts, found, strict=True):
        lines = [printable(query)]
        shows_parts = wanted.by == "both" and wanted.rerank is None  # its score says only the order
        if shows_parts and hits:
            lines.append("    score  words  vector")
        for hit in hits:
            parts = (hit.words, hit.vector) if shows_parts else ()
            scores = f"  {format_number(hit.score):>7}" + "".join(map(_show_part, parts))
            shown = shorten(printable(" ".join(hit.text.split())), SHOWN_CHARS)
            lines.append(f"{scores}  {printable(hit.name):<12} {shown}")
        if not hits:
            lines.append("  nothing found")
        print_result(lines, "\n".join, json=json, facts={"query": query, "hits": list(hits)})


def _show_part(score: float | None) -> str:
    return f" {'-' if score is None else f'{score:.2f}':>6}"


def rerank(
    model: str,
    query: Words,
    /,
    *inputs: Words,
    top_k: TopK = 10,
    reading: CorpusSettings = CorpusSettings(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Order texts by how well they answer a query, with a model that reads both together.

    The model's value orders them; it may be any number, and higher is better. Each text has its id
    or the number of its row, from 1.

    **Examples**

        bertkit rerank reranker/ "How do I mend a tire?" passages.txt

        bertkit rerank reranker/ "a refund" faq.csv --text-column answer --id-column number --json

        bertkit search "a refund" --corpus notes/ --rerank reranker/

    Args:
        model: A folder of `bertkit finetune rerank`, another model of pairs of texts, such as a
            CrossEncoder, or the id of a model of the Hub.
        query: What the texts are to answer, in quotes.
        inputs: Files, folders or globs of texts, or - for standard input.
        json: Print one JSON object, with whole texts.
    """
    check_standard_output()
    check_count("top_k", top_k)
    if not inputs:
        raise SettingsError("give a file or folder of texts, or - for standard input")
    from bertkit.checkpoints.hub import check_model

    check_model(model)
    from bertkit.data.tables.text_files import open_text_files

    files = open_text_files(inputs, reading)
    from bertkit.inference.predictor import PredictionCounts
    from bertkit.inference.reranker import Reranker

    reranker, counts, names = Reranker.load(model, loading), PredictionCounts(), list[str]()

    def read() -> Iterator[str]:
        for number, row in enumerate(files.rows(), start=1):
            if row.text.strip():
                names.append(str(row.id or number))
                yield row.text

    found = reranker.rank(replace_surrogates([query])[0], read(), top_k, counts)
    if not names:
        raise InputError(f"{files.name} has no text")
    rows = [{"id": names[one.row], "score": one.score, "text": one.text} for one in found]
    length = reranker.task.settings.max_length
    if problems := list_problems(counts, max_length=length, num_undecodable=files.num_undecodable):
        announce(append_problems(f"{files.name}: {pluralize(len(names), 'text')}", problems))
    print_result(rows, describe_ranking, json=json, facts={"query": query, "texts": rows})


def describe_ranking(rows: list[dict[str, Any]]) -> str:
    """Show a line for each text: its score, its id, and its beginning."""
    lines = []
    for row in rows:
        shown = shorten(printable(" ".join(row["text"].split())), SHOWN_CHARS)
        lines.append(f"{format_number(row['score']):>7}  {printable(row['id']):<12} {shown}")
    return "\n".join(lines)


def nearest(
    *words: Words,
    model: NamedModel = None,
    top_k: TopK = 10,
    settings: WordVectorSettings = WordVectorSettings(),
    json: bool = False,
) -> None:
    """List the entries of a vocabulary that are nearest to a word, or to a sum of words, by cosine.

    An argument such as "king - man + woman" adds and subtracts the vectors of its words, each
    normalized to length 1 (3CosAdd); + and - stand between blanks.

    At layer 0, vectors are the word embeddings. At a higher layer, each entry goes through the
    model alone, as [CLS] entry [SEP], which takes far longer; this is done once per call, for all
    words, and isn't cached.

    The model may also be a folder of `bertkit study skip-gram` or another network of the studies,
    which has word embeddings alone.

    A word of several pieces gets the mean of their vectors; the pieces are printed. The words
    themselves and their pieces are excluded from the answer, as is usual; without that, the answer
    to a sum is often one of them.

    **Examples**

        bertkit nearest bank

        bertkit nearest bank --model run/ --top-k 5

        bertkit nearest "king - man + woman"

        bertkit nearest bank river --model google-bert/bert-base-uncased --layer -1

        bertkit nearest run --json

    Args:
        words: Words or entries of the vocabulary, or sums of them; each gets its own list.
        json: Print one JSON object per list.
    """
    check_standard_output()
    if not words:
        raise InputError("there is no word; give at least one")
    model = choose_model(model, "vectors", words)
    from bertkit.inference.embeddings.word_vectors import WordVectors

    sums = [read_sum(word) for word in replace_surrogates(words)]
    vectors = WordVectors.load(model, settings)
    for found in [vectors.nearest(plus, minus, top_k=top_k) for plus, minus in sums]:
        named = [("+", word) for word in found.plus] + [("-", word) for word in found.minus]
        terms = " ".join(f"{sign} {printable(word.word)}" for sign, word in named)
        lines = [terms.removeprefix("+ ")]
        lines += [
            f"  {printable(word.word)} is the mean of {printable(' '.join(word.pieces))}"
            for _, word in named
            if len(word.pieces) > 1
        ]
        lines += [
            f"  {format_number(neighbor.similarity):>6} {printable(neighbor.token)}"
            for neighbor in found.neighbors
        ]
        print_result(lines, "\n".join, json=json, facts=found)


def read_sum(expression: str) -> tuple[list[str], list[str]]:
    """Return the words to add and to subtract in an expression such as `king - man + woman`.

    An operator stands between blanks, so a hyphen within a word isn't one. A word may have blanks.
    The minus sign of typesetting (U+2212) is read as a hyphen.

    Raises:
        InputError: an operator has no word after it, or there is no word to add.
    """
    if expression in ("+", "-", MINUS_SIGN):  # an entry of the vocabulary
        return [expression], []
    first, *others = OPERATOR.split(expression)
    terms = [("+", first)] if first or not others else []
    terms += zip(others[::2], others[1::2], strict=True)
    sums: dict[str, list[str]] = {"+": [], "-": []}
    for sign, word in terms:
        if others and not word.strip():
            raise InputError(f"{expression!r} has no word after {sign}")
        sums[sign.replace(MINUS_SIGN, "-")].append(word.strip() if others else word)
    if not sums["+"]:
        raise InputError(f"{expression!r} has no word to add")
    return sums["+"], sums["-"]
