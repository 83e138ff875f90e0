"""Full-text search with SQLite's FTS5: rows ranked by BM25 for any of the words of a query.

In scripts without spaces between words, the indexed text has, at each character, the gram that
starts there: two characters in Chinese and Japanese, three in Thai, Lao, Khmer and Burmese.

Scoring a row takes most of the time, so the candidates are the best rows for the rarest words, as
many as stand in `MAX_SCORED` rows together. These candidates are then scored for more of the words,
from the rarest on, as many as stand in `MAX_READ` rows together; where there are too few, these
words find candidates, too. English function words count only in a query of nothing else.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from bertkit.retrieval.filters import Condition
from bertkit.tokenization.words import SURROGATE, UNSPACED, split_words

NUM_CANDIDATES, MAX_SCORED, MAX_READ = 1000, 20_000, 200_000
LIMITS = (2_000, 6_000, 20_000, 60_000, MAX_READ)  # up to which words are counted, one by one
# Rows with less have only words of more than half of the rows, which FTS5 gives a weight of 1e-6.
LEAST_SCORE = 1e-3
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 10_000, 100  # what follows is ignored
UNICODE = "unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
# A tenth to a quarter of the words of English texts, and under 6 % of other languages'.
ENGLISH = frozenset(("the", "of", "and", "to", "that", "with", "for", "are", "this", "it"))
LEAST_ENGLISH = 0.08
FUNCTION_WORDS = ENGLISH.union(
    split_words(
        "a about after am an any as at be been before being but by can could did do does doing"
        " during each from had has have having he her hers him his how i if in into is its me my no"
        " nor not on or our out over s she should so some such t than their them then there these"
        " they those through too under until very was we were what when where which while who whom"
        " whose why will would you your"
    )
)
SAMPLE_CHARS = 1000  # of a text, which tell whether it is English
FEW = 200  # passages, which may not tell yet
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
    connection.execute(
        f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize=\"{tokenizer}\")"
    )


def update_tokenizer(connection: Connection, tokenizer: str) -> str:
    """Choose the tokenizer again while there are few passages; index them anew for another one."""
    rows = connection.execute("SELECT row, text FROM passages LIMIT ?", (FEW + 1,)).fetchall()
    chosen = tokenizer if len(rows) > FEW else choose_tokenizer([text for _, text in rows])
    if chosen != tokenizer:
        connection.execute("DROP TABLE words")
        create_words(connection, chosen)
        add_words(connection, rows)
    return chosen


def add_words(connection: Connection, rows: Iterable[tuple[int, str]]) -> None:
    """Index the texts of rows."""
    insert = "INSERT INTO words (rowid, text) VALUES (?, ?)"
    connection.executemany(insert, ((row, _prepare(text)) for row, text in rows))


def delete_words(connection: Connection, rows: Iterable[tuple[int, str]]) -> None:
    """Delete rows, given with the texts that they were added with."""
    delete = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"
    connection.executemany(delete, ((row, _prepare(text)) for row, text in rows))


def find_words(
    connection: Connection, query: str, num: int, where: Condition | None = None
) -> list[tuple[int, float]]:
    """Find the best rows for any word of a query, with their BM25 (higher is better).

    Any text is a query, of which the first 10,000 characters and 100 words count; none of it is
    read as FTS5's syntax. Ties are ordered by row. `where` is about the documents of the rows.
    """
    terms = _list_terms(query)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE sql LIKE '%porter%'").fetchone():
        terms = [term for term in terms if term.strip('"') not in FUNCTION_WORDS] or terms
    rare, common = _choose(connection, terms)
    if not rare:
        return []
    passing = "SELECT row FROM passages JOIN documents ON documents.number = document WHERE "
    condition = None if where is None else Condition(passing + where.sql, where.values)
    found = _score(connection, " OR ".join(rare), condition, max(num, NUM_CANDIDATES))
    if len(found) < num and common:  # few rows have a rare word, or few of these pass
        num_more = len(common) if where else 1
        rare, common = rare + common[:num_more], common[num_more:]
        found = _score(connection, " OR ".join(rare), condition, max(num, NUM_CANDIDATES))
    if common:
        match = f"({' OR '.join(rare)}) AND ({' OR '.join(common)})"
        rows = json.dumps([row for row, _ in found])
        condition = Condition("SELECT value FROM json_each(?)", (rows,))
        scores = dict(found) | dict(_score(connection, match, condition, len(found)))
        found = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return found[:num]


def _score(
    connection: Connection, match: str, among: Condition | None, num: int
) -> list[tuple[int, float]]:
    """Find the best rows, those of a SELECT or any; FTS5's BM25 is negative."""
    # With "+", FTS5 isn't asked for each of the rows.
    passing, values = (f" AND +rowid IN ({among.sql})", among.values) if among else ("", ())
    found = connection.execute(
        f"""SELECT rowid, -score FROM (
            SELECT rowid, bm25(words) AS score FROM words WHERE words MATCH ?{passing} LIMIT ?
        ) ORDER BY score, rowid LIMIT ?""",  # noqa: S608
        (match, *values, MAX_READ, num),
    )
    return found.fetchall()


def _prepare(text: str) -> str:
    """Normalize a text, and write grams in place of characters without spaces between words."""
    if text.isascii():
        return text
    return RUN.sub(lambda run: f" {' '.join(_cut_grams(run[0])[0])} ", _normalize(text))


def _normalize(text: str) -> str:
    """Normalize a text; SQLite doesn't know the capitals of newer scripts."""
    return unicodedata.normalize("NFKC", SURROGATE.sub(" ", text)).lower()


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


def _choose(connection: Connection, terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """Choose the rare words that find candidates, at least one, and those that only score them."""
    counting = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    rare: list[str] = []
    common: list[str] = []
    num_read = 0
    for limit in LIMITS:
        limit = min(limit, MAX_READ - num_read)
        counts = {
            term: connection.execute(counting, (term, limit + 1)).fetchone()[0] for term in terms
        }
        terms = [term for term in terms if counts[term] > limit]
        for count, term in sorted((counts[term], term) for term in counts.keys() - terms):
            num_read += count
            if num_read > MAX_READ:
                return rare, common
            if count:
                (common if rare and num_read > MAX_SCORED else rare).append(term)
    return rare or list(terms[:1]), common
