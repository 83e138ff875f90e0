"""Full-text search with SQLite's FTS5: rows ranked by BM25 for any of the words of a query.

In scripts without spaces between words, the indexed text has, at each character, the gram that
starts there: two characters in Chinese and Japanese, three in Thai, Lao, Khmer and Burmese.

Words are taken from the rarest on, while they stand in at most `MAX_POSTINGS` rows together. What
is left out are the words of most texts, which say little and would take most of the time.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from bertkit.retrieval.filters import Condition
from bertkit.tokenization.words import SURROGATE, UNSPACED, split_words

MAX_POSTINGS = 50_000
LIMITS = (MAX_POSTINGS // 32, MAX_POSTINGS // 8, MAX_POSTINGS // 2, MAX_POSTINGS)
# Rows with less have only words of more than half of the rows, which FTS5 gives a weight of 1e-6.
LEAST_SCORE = 1e-3
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 10_000, 100  # what follows is ignored
UNICODE = "unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
ENGLISH = frozenset(("the", "of", "and", "to", "that", "with", "for", "are", "this", "it"))
LEAST_ENGLISH = 0.08  # share of these among the words of a text
SAMPLE_CHARS = 1000  # of a text, which tell whether it is English
RUN = re.compile(rf"[{UNSPACED}]+")
CHARACTER = re.compile(rf"[{UNSPACED}](?:(?!\w)[{UNSPACED}])*")  # with its marks
FIRST_OF_CHINESE = "\u3000"


def choose_tokenizer(texts: Sequence[str]) -> str:
    """Choose FTS5's tokenizer: with Porter's stemmer if the texts are English."""
    words = [word for text in texts for word in split_words(text[:SAMPLE_CHARS])]
    is_english = sum(word in ENGLISH for word in words) > LEAST_ENGLISH * len(words)
    return f"porter {UNICODE}" if is_english else UNICODE


def create_words(connection: Connection, tokenizer: str) -> None:
    """Make the table `words`, whose rowid is the row of a passage."""
    quoted = tokenizer.replace('"', '""')
    connection.execute(
        f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize=\"{quoted}\")"
    )


def add_words(connection: Connection, rows: Iterable[tuple[int, str]]) -> None:
    """Index the texts of rows."""
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((row, _prepare(text)) for row, text in rows),
    )


def delete_words(connection: Connection, rows: Iterable[tuple[int, str]]) -> None:
    """Delete rows, given with the texts that they were added with."""
    connection.executemany(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
        ((row, _prepare(text)) for row, text in rows),
    )


def find_words(
    connection: Connection, query: str, num: int, where: Condition | None = None
) -> list[tuple[int, float]]:
    """Find the best rows for any word of a query, with their BM25 (higher is better).

    Any text is a query; none of it is read as FTS5's syntax. Ties are ordered by row.

    Args:
        connection: of an index.
        query: of which the first 10,000 characters and 100 words count.
        num: how many rows at most.
        where: what the documents of the rows must fulfill.
    """
    match = _choose(connection, _list_terms(query))
    if not match:
        return []
    passing, values = "", where.values if where is not None else ()
    if where is not None:  # with "+", FTS5 isn't asked for each row that passes
        passing = f""" AND +rowid IN (SELECT row FROM passages JOIN documents
            ON documents.number = passages.document WHERE {where.sql})"""  # noqa: S608
    found = connection.execute(
        f"""SELECT rowid, score FROM (
            SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ?{passing} LIMIT ?
        ) ORDER BY score DESC, rowid LIMIT ?""",  # noqa: S608
        (match, *values, MAX_POSTINGS, num),
    )
    return found.fetchall()


def _prepare(text: str) -> str:
    """Normalize a text, and write grams in place of characters without spaces between words."""
    if text.isascii():
        return text
    return RUN.sub(lambda run: f" {' '.join(_cut_grams(run[0])[0])} ", _normalize(text))


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", SURROGATE.sub(" ", text))


def _cut_grams(run: str) -> tuple[list[str], int]:
    """Cut the grams that start at each character, and return how many of them aren't cut short."""
    characters, size = CHARACTER.findall(run), 2 if run >= FIRST_OF_CHINESE else 3
    grams = ["".join(characters[start : start + size]) for start in range(len(characters))]
    return grams, max(0, len(grams) - size + 1)


def _list_terms(query: str) -> list[str]:
    """List the different words of a query as terms of FTS5's syntax."""
    text = _normalize(query[:MAX_QUERY_CHARS])
    terms = [f'"{word}"' for word in split_words(RUN.sub(" ", text))]
    for run in RUN.findall(text):
        grams, num_whole = _cut_grams(run)
        terms += [f'"{gram}"' for gram in grams[:num_whole]] or [f'"{run}" *']
    return list(dict.fromkeys(terms))[:MAX_QUERY_WORDS]


def _choose(connection: Connection, terms: Sequence[str]) -> str:
    """Write the query: any of the rarest words, or all of them if each stands in too many rows."""
    counting = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    chosen: list[str] = []
    left = MAX_POSTINGS
    for limit in LIMITS:  # so that common words aren't counted to the end if rare ones suffice
        limit = min(limit, left)
        counts = {
            term: connection.execute(counting, (term, limit + 1)).fetchone()[0] for term in terms
        }
        terms = [term for term in terms if counts[term] > limit]
        for term in sorted(counts.keys() - terms, key=lambda term: (counts[term], term)):
            if counts[term] > left:
                return " OR ".join(chosen)
            chosen.append(term)
            left -= counts[term]
    return " OR ".join(chosen) or " ".join(terms)
