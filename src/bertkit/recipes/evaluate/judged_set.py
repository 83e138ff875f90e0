"""Passages, queries, and the judged relevance of passages to queries, as in BEIR's data sets.

A corpus and queries are rows with an id and a text; a corpus may have titles, too. Judgments, or
qrels, are rows with the ids of a query and a passage, and a number.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.settings import Settings, name_flag
from bertkit.data.input_files import find_extension
from bertkit.data.tables.decoder import show_names
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.columns import find_usual, read_label, read_number, take_text, take_value

SOURCES = ("corpus", "queries", "qrels")
CORPUS_IDS = ("_id", "id", "corpus-id", "corpus_id", "doc_id", "docid", "passage_id")
QUERY_IDS = ("_id", "id", "query-id", "query_id", "qid")
CORPUS_TEXTS = ("text", "passage", "document", "body", "contents")
QUERY_TEXTS = ("text", "query", "question")
TITLE = "title"
OF_QUERY = (*QUERY_IDS[2:], "query")
OF_PASSAGE = (*CORPUS_IDS[2:], "document", "passage")
RELEVANCE = ("score", "relevance", "rel", "label")
LINE = "text"  # the format of lines without names of columns, and their only column
NUM_CELLS = (3, 4)  # of such a line
NO_LINES = {".parquet", ".xlsx"}  # extensions of formats that aren't text
# Settings of tables that are those of a single one.
OF_ONE_TABLE = ("format", "delimiter", "header", "decimal")

NEEDS_DATA = "give labeled data, or the three files of --retrieval: corpus, queries and judgments"

Judgment = tuple[str, str, float]


def refuse_columns(columns: Settings) -> None:
    """Refuse names of the columns of labeled rows."""
    if columns.model_dump(exclude_none=True):
        raise SettingsError(
            "the columns of the files of --retrieval have usual names; leave out those of labeled"
            " data"
        )


@dataclass(frozen=True)
class JudgedSet:
    """A corpus, the queries that have a relevant passage, and how relevant passages are to them.

    Attributes:
        name: of the judgments, in messages.
        corpus: texts by id.
        queries: texts by id.
        relevance: by query and passage; passages that aren't judged aren't relevant.
        identities: name, format and SHA-256 of each of `SOURCES`.
        problems: lines about what was left out.
    """

    name: str
    corpus: dict[str, str]
    queries: dict[str, str]
    relevance: dict[str, dict[str, float]]
    identities: dict[str, JsonValue]
    problems: list[str]

    @classmethod
    def read(cls, sources: Sequence[Table], settings: RecordSettings) -> Self:
        """Read the corpus, the queries and the judgments.

        Judgments of unknown queries, and queries without a relevant passage, are left out and
        counted. It is an `InputError` if columns are missing, or most of the judgments are unknown.
        """
        tables = _open(sources, settings)
        usual = ((CORPUS_IDS, CORPUS_TEXTS), (QUERY_IDS, QUERY_TEXTS))
        # All columns are found before a file is read.
        columns = [_find(table, *names) for table, names in zip(tables, usual, strict=False)]
        of_judgments = [LINE] * 3
        if tables[2].format != LINE:
            of_judgments = _find(tables[2], OF_QUERY, OF_PASSAGE, RELEVANCE)
        corpus, queries = (
            _read_texts(table, *names) for table, names in zip(tables, columns, strict=False)
        )
        relevance = _read_judgments(tables[2], *of_judgments)
        problems = [line for table in tables for line in table.report.summary_lines()]
        problems += _check_known(tables[2].name, relevance, corpus, queries)
        chosen = {
            name: text
            for name, text in queries.items()
            if any(value > 0 for value in relevance.get(name, {}).values())
        }
        if not chosen:
            raise InputError(f"{tables[2].name}: no query has a relevant passage")
        if num_alone := len(queries) - len(chosen):
            problems.append(
                f"{tables[1].name}: {num_alone:,} of {pluralize(len(queries), 'query', 'queries')}"
                " without a relevant passage, left out"
            )
        identities: dict[str, JsonValue] = {
            name: {**table.identity} for name, table in zip(SOURCES, tables, strict=True)
        }
        return cls(tables[2].name, corpus, chosen, relevance, identities, problems)


def _open(sources: Sequence[Table], settings: RecordSettings) -> list[RecordTable]:
    """Open corpus, queries and judgments."""
    if given := settings.model_fields_set.intersection(OF_ONE_TABLE):
        names = ", ".join(name_flag(name) for name in sorted(given))
        raise SettingsError(
            f"each of the three files of --retrieval has a format of its own; leave out {names}"
        )
    *texts, judgments = zip(sources, SOURCES, strict=True)
    tables = [open_records(source, settings, split=name) for source, name in texts]
    return [*tables, _open_judgments(*judgments, settings)]


def _open_judgments(source: Table, name: str, settings: RecordSettings) -> RecordTable:
    """Open judgments: a table, or lines as trec_eval reads them, without names of columns."""
    if isinstance(source, str | Path) and find_extension(Path(source)) not in NO_LINES:
        lines = open_records(source, settings.model_copy(update={"format": LINE}), split=name)
        first = next(iter(lines.look()), None)
        if first is not None and not math.isnan(_split(str(first.values[LINE]))[2]):
            return lines
    return open_records(source, settings, split=name)


def _split(line: str) -> Judgment:
    """Split a line of trec_eval: a query, perhaps a 0, a passage, a number; NaN if it is none."""
    cells = line.split("\t") if "\t" in line else line.split()
    number = read_number(cells[-1]) if len(cells) in NUM_CELLS else math.nan
    return (cells[0], cells[-2], number) if len(cells) in NUM_CELLS else ("", "", number)


def _find(table: RecordTable, *usual: Sequence[str]) -> list[str]:
    """Find columns by their usual names, and raise `InputError` for one that is missing."""
    found = [find_usual(table.columns, names) for names in usual]
    for name, names in zip(found, usual, strict=True):
        if name is None:
            shown = show_names(table.columns or ()) or "none"
            raise InputError(
                f"{table.name} has no column {', '.join(names[:-1])} or {names[-1]}; rename one of"
                f" its columns: {shown}"
            )
    return [name for name in found if name is not None]


def _read_texts(table: RecordTable, id_column: str, text_column: str) -> dict[str, str]:
    """Read texts by id; a title stands before the text."""
    known: set[str] = set()

    def parse(record: Record) -> tuple[str, str]:
        name = _take_id(record, id_column)
        if name in known:
            raise BrokenRowError(f"{record.place} has the id of an earlier row: {name!r:.40}")
        text = take_text(record, text_column)
        if record.values.get(TITLE) is not None:
            text = f"{take_text(record, TITLE)} {text}".strip()
        known.add(name)
        return name, text

    return dict(table.read(parse))


def _read_judgments(
    table: RecordTable, query_column: str, passage_column: str, number_column: str
) -> dict[str, dict[str, float]]:
    """Read the relevance of passages by query."""
    relevance: dict[str, dict[str, float]] = {}

    def parse(record: Record) -> Judgment:
        if table.format == LINE:
            query, passage, number = _split(str(record.values[LINE]))
        else:
            query, passage = _take_id(record, query_column), _take_id(record, passage_column)
            number = read_number(str(take_value(record, number_column)))
        if not math.isfinite(number):
            raise BrokenRowError(f"{record.place} has no number in {number_column}")
        if passage in relevance.setdefault(query, {}):
            raise BrokenRowError(f"{record.place} judges the same passage again")
        relevance[query][passage] = number
        return query, passage, number

    table.read(parse)
    return relevance


def _take_id(record: Record, column: str) -> str:
    name = read_label(take_value(record, column))
    if not name:
        raise BrokenRowError(f"{record.place} has no id in {column}")
    return name


def _check_known(
    name: str,
    relevance: dict[str, dict[str, float]],
    corpus: dict[str, str],
    queries: dict[str, str],
) -> list[str]:
    """Describe judgments of unknown ids; raise `InputError` if these are most of them."""
    counts = Counter[str]()
    for query, passages in relevance.items():
        counts["query"] += len(passages) * (query not in queries)
        counts["passage"] += sum(passage not in corpus for passage in passages)
    total = sum(map(len, relevance.values()))
    outcomes = {
        "query": ("name a query that isn't among the queries", "left out"),
        "passage": ("name a passage that the corpus lacks", "counted as not found"),
    }
    lines, judgments = [], pluralize(total, "judgment")
    for what, (problem, outcome) in outcomes.items():
        found = f"{name}: {counts[what]:,} of {judgments} {problem}"
        if 2 * counts[what] > total:
            raise InputError(f"{found}; are the three files of one data set?")
        if counts[what]:
            lines.append(f"{found}: {outcome}")
    return lines
