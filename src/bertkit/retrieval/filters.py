"""Filters on the fields of documents, and the table of fields that they are applied to.

    year >= 2020 and (lang = 'de' or lang in ('en', 'fr')) and not title like '%draft%'

A filter becomes SQL made of fixed parts; the names and values in it are bound.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from sqlite3 import Connection

from pydantic import JsonValue

from bertkit.base.errors import SettingsError
from bertkit.reports.text import show
from bertkit.tokenization.words import SURROGATE

MAX_CHARS, MAX_DEPTH, MAX_FIELDS = 5_000, 12, 500  # SQLite's parser has limits of its own
NAMES_COLUMNS = 400
MAX_EXACT = 2**53  # greater integers are equal if their digits are
UNSTORABLE = re.compile(rf"{SURROGATE.pattern}|\0")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TOKEN = re.compile(
    rf"\s*(?:(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<number>{NUMBER.pattern})(?![\w.:/-])"
    r"|(?P<sign>[<>!]=|[=<>(),])|(?P<word>[^\W\d][\w.-]*)|(?P<end>\Z)|(?P<other>\S+))"
)
KEYWORDS = ("and", "or", "not", "in", "like")
INEQUALITIES = ("<", "<=", ">", ">=")
SIGNS = ("=", "!=", *INEQUALITIES, "in", "like")
# The id is a field like others, unless a field is called so.
FIELDS_WITH_ID = """(SELECT document, name, text, number FROM fields UNION ALL
    SELECT number, 'id', id, CASE WHEN id GLOB '*[^0-9]*' THEN NULL ELSE CAST(id AS REAL) END
    FROM documents WHERE NOT EXISTS (SELECT 1 FROM fields WHERE name = 'id'))"""
EXAMPLE = "write, for example, year >= 2020 and lang in ('de', 'fr')"

Value = str | float


@dataclass(frozen=True)
class Condition:
    """An expression of SQL that is true for each `documents.number` that passes."""

    sql: str
    values: tuple[Value, ...]
    names: tuple[str, ...] = ()  # of the fields of a filter


def read_filter(where: object) -> Condition:
    """Read a filter.

    Args:
        where: an expression, or the value of each field, or the list of the values that it may
            have, as in `{"lang": "de", "year": [2019, 2020]}`.

    Raises:
        SettingsError: it isn't valid; the message says in which column.
    """
    if isinstance(where, str):
        return _Reader(where).read()
    if not isinstance(where, Mapping) or len(where) > MAX_FIELDS:
        raise SettingsError(
            f"expected an expression, or a dict of at most {MAX_FIELDS} fields, as a filter, got"
            f" {show(repr(where))}"
        )
    names = [_clean(str(name)) for name in where]
    parts = [
        _compare(name, "=", [_read_value(name, one) for one in _list(value)])
        for name, value in zip(names, where.values(), strict=True)
    ]
    sql = " AND ".join(part.sql for part in parts) or "1"
    return Condition(sql, tuple(value for part in parts for value in part.values), tuple(names))


def compile_filter(connection: Connection, given: Condition) -> Condition:
    """Give the condition of a filter on an index's documents.

    Raises:
        SettingsError: no document has a field of this name.
    """
    for name in (one for one in given.names if one != "id"):
        if not connection.execute("SELECT 1 FROM fields WHERE name = ?", (name,)).fetchone():
            known = connection.execute("SELECT DISTINCT name FROM fields ORDER BY name")
            names = show(", ".join(one for (one,) in known), NAMES_COLUMNS) or "none"
            raise SettingsError(
                f"expected a field of the index in the filter, got {show(name)}; its fields:"
                f" {names}"
            )
    return given


def add_fields(connection: Connection, documents: Mapping[int, Mapping[str, JsonValue]]) -> None:
    """Make the fields of documents known to filters; each value of a list counts."""
    connection.executemany(
        "INSERT INTO fields (document, name, text, number) VALUES (?, ?, ?, ?)",
        (
            (document, _clean(name), _clean(text), _read_number(text))
            for document, fields in documents.items()
            for name, value in fields.items()
            for one in _list(value)
            if one is not None
            for text in [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)]
        ),
    )


def delete_fields(connection: Connection, documents: Sequence[int]) -> None:
    """Delete the fields of documents."""
    numbers = ((number,) for number in documents)
    connection.executemany("DELETE FROM fields WHERE document = ?", numbers)


def _clean(text: str) -> str:
    """Replace what SQLite's JSON doesn't hold whole."""
    return UNSTORABLE.sub("\ufffd", text)


def _read_number(text: str) -> float | None:
    number = float(text) if NUMBER.fullmatch(text.strip()) else None
    return number if number is not None and isfinite(number) else None


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple | set | frozenset) else [value]


def _read_value(name: str, value: object) -> Value:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Integral) and abs(int(value)) > MAX_EXACT:
        return str(int(value))
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    raise SettingsError(
        f"expected texts, finite numbers or lists of them as the values of a filter, got"
        f" {show(repr(value))} for {show(name)}"
    )


def _compare(name: str, sign: str, values: Sequence[Value]) -> Condition:
    """Compare a field with one value, or ("=") with several; any of a document's values counts."""
    table = "fields" if name != "id" else FIELDS_WITH_ID
    select = f"SELECT document FROM {table} WHERE name = ? AND"  # noqa: S608
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if not isinstance(value, str)]
    parts: list[str] = []
    bound: list[Value] = []
    for column, each in (("text", texts), ("number", numbers)):
        if each:
            compared = f"{sign} ?" if len(each) == 1 else "IN (SELECT value FROM json_each(?))"
            parts.append(f"{select} {column} {compared}")
            bound += [name, each[0] if len(each) == 1 else json.dumps(each)]
    return Condition(f"documents.number IN ({' UNION ALL '.join(parts)})", tuple(bound))


class _Reader:
    """Reads an expression, whose structure is SQL's own: only comparisons are written anew."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARS:
            raise SettingsError(
                f"expected at most {MAX_CHARS:,} characters of a filter, got {len(text):,}; in"
                " Python, a dict takes long lists of values"
            )
        self.tokens = TOKEN.finditer(_clean(text))
        self.token = next(self.tokens)
        self.sql: list[str] = []
        self.values: list[Value] = []
        self.names: list[str] = []

    def read(self) -> Condition:
        depth = 0
        while not self.sql or self._copy("and", "or"):
            self._copy("not")
            while self._copy("("):
                depth += 1
                if depth > MAX_DEPTH:
                    raise self._refuse(f"at most {MAX_DEPTH} parentheses within each other")
                self._copy("not")
            self._read_comparison()
            while depth and self._copy(")"):
                depth -= 1
        if self.token.lastgroup != "end" or depth:
            raise self._refuse(f"'and', 'or' or {')' if depth else 'the end'}")
        return Condition(" ".join(self.sql), tuple(self.values), tuple(dict.fromkeys(self.names)))

    def _read_comparison(self) -> None:
        if self.token.lastgroup not in {"text", "word"} or self._word in KEYWORDS:
            raise self._refuse("the name of a field")
        self.names.append(self._next())
        is_negated = self._word == "not" and bool(self._next())
        sign = self._expect(*(("in", "like") if is_negated else SIGNS))
        values = [self._read_value(sign)] if sign != "in" else self._read_values()
        condition = _compare(self.names[-1], {"in": "=", "!=": "="}.get(sign, sign), values)
        self.sql += ["NOT"] * (is_negated or sign == "!=") + [condition.sql]
        self.values += condition.values

    def _read_values(self) -> list[Value]:
        self._expect("(")
        values = [self._read_value("in")]
        while self._expect(",", ")") == ",":
            values.append(self._read_value("in"))
        return values

    def _read_value(self, sign: str) -> Value:
        kind = self.token.lastgroup
        if kind == "text":
            return self._next()
        if sign == "like":
            raise self._refuse("a text in quotes")
        if kind == "number" and isfinite(float(self._word)):
            number, word = float(self._word), self._next()
            is_exact = sign in INEQUALITIES or abs(number) < MAX_EXACT or not word.isdigit()
            return number if is_exact else word
        if self._word not in {"true", "false"}:
            raise self._refuse("a number, or a text or date in quotes")
        return self._next().lower()

    @property
    def _word(self) -> str:
        """The current token in lower case, as keywords are compared."""
        return self.token[self.token.lastgroup or 0].lower()

    def _next(self) -> str:
        """Return the current token, without quotes, and go on."""
        word = self.token[self.token.lastgroup or 0]
        self.token = next(self.tokens)
        return word[1:-1].replace(word[0] * 2, word[0]) if word[0] in "'\"" else word

    def _copy(self, *words: str) -> bool:
        if self._word not in words:
            return False
        self.sql.append(self._next().upper())
        return True

    def _expect(self, *words: str) -> str:
        if self._word not in words:
            raise self._refuse(f"{'one of ' if words[1:] else ''}{' '.join(words)}")
        return self._next().lower()

    def _refuse(self, expected: str) -> SettingsError:
        kind = self.token.lastgroup or ""
        return SettingsError(
            f"expected {expected} in column {self.token.start(kind) + 1} of the filter, got"
            f" {show(self.token[kind]) or 'its end'}; {EXAMPLE}"
        )
