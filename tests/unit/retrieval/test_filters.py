"""Filters pass the documents that they say, name errors by column, and bind what users give."""

import re
import sqlite3

import pytest

from bertkit.base.errors import SettingsError
from bertkit.retrieval.filters import (
    MAX_CHARS,
    MAX_DEPTH,
    add_fields,
    compile_filter,
    delete_fields,
    read_filter,
)

DOCUMENTS = {
    1: {"lang": "de", "year": 2019, "tags": ["red", "blue"], "is open": True},
    2: {"lang": "en", "year": 2021.5, "tags": [], "note": "50% 'off'"},
    3: {"lang": "de", "year": "2022", "note": None, "deep": {"a": [1]}},
    4: {"lang": "fr", "year": "about 1990", "id": "007"},
    5: {"stamp": 2**60 + 1, "word\0": "c\0d"},
}


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT)")
    connection.execute("CREATE TABLE fields (document INTEGER, name TEXT, text TEXT, number REAL)")
    ids = ((number, f"a{number}" if number < 4 else str(number)) for number in DOCUMENTS)
    connection.executemany("INSERT INTO documents VALUES (?, ?)", ids)
    add_fields(connection, DOCUMENTS)
    return connection


def passing(connection, where):
    condition = compile_filter(connection, read_filter(where))
    sql = f"SELECT number FROM documents WHERE {condition.sql} ORDER BY number"
    return [number for (number,) in connection.execute(sql, condition.values)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("lang = 'de'", [1, 3]),
        ('lang="de" AND year>=2020', [3]),
        ("year < 2010", []),
        ("year <= 2019 or year > 2021.6", [1, 3]),
        ("year = 2022", [3]),
        ("year = '2022'", [3]),
        ("year = '2019.0'", []),
        ("year < '2021'", [1]),
        ("year != 2019", [2, 3, 4, 5]),
        ("not year = 2019 and not lang = 'fr'", [2, 3, 5]),
        ("not (year = 2019 or lang = 'fr')", [2, 3, 5]),
        ("lang = 'fr' or lang = 'en' and year > 2030", [4]),
        ("(lang = 'fr' or lang = 'en') and year > 2020", [2]),
        ("tags = 'blue'", [1]),
        ("tags != 'blue'", [2, 3, 4, 5]),
        ("lang in ('en', 'fr') and year in (2021.5, '2019')", [2]),
        ("year not in (2019, 'about 1990')", [2, 3, 5]),
        ("lang like 'D%'", [1, 3]),
        ("lang not like 'd_'", [2, 4, 5]),
        ("\"is open\" = true and 'is open' = 'true'", [1]),
        ("note = '50% ''off'''", [2]),
        ("id = 7 and id = '007' and id = +7.0e0", [4]),
        ("deep like '%[1]%'", [3]),
        ({"lang": "de", "year": [2019, "2022"]}, [1, 3]),
        ({"year": ["2022"], "lang": ["de", "en"]}, [3]),
        ({"is open": True}, [1]),
        ({"lang": []}, []),
        ({}, [1, 2, 3, 4, 5]),
        (f"stamp = {2**60 + 1} and stamp in ({2**60 + 1}) and stamp > 1", [5]),
        (f"stamp = {2**60}", []),
        ({"stamp": [2**60 + 1, 10**400]}, [5]),
        ({"stamp": 2**60}, []),
        ({"word\0": ["c\0d", "c"]}, [5]),
    ],
    ids=str,
)
def test_a_filter_passes_the_documents_that_it_says(connection, where, expected):
    assert passing(connection, where) == expected


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "expected the name of a field in column 1 of the filter, got its end"),
        ("lang", "expected one of = != < <= > >= in like in column 5 of the filter, got its end"),
        (
            "lang = de",
            "expected a number, or a text or date in quotes in column 8 of the filter, got de",
        ),
        (
            "lang == 'de'",
            "expected a number, or a text or date in quotes in column 7 of the filter, got =",
        ),
        ("lang = 'de", "column 8 of the filter, got 'de"),
        ("year = 1e999", "column 8 of the filter, got 1e999"),
        ("year = 12ab", "column 8 of the filter, got 12ab"),
        (
            "day > 2024-01-01",
            "or a text or date in quotes in column 7 of the filter, got 2024-01-01",
        ),
        (["x"], "expected an expression, or a dict of at most 500 fields, as a filter, got ['x']"),
        ({str(number): 1 for number in range(501)}, "dict of at most 500 fields"),
        ("lang like 5", "expected a text in quotes in column 11"),
        ("lang in 'de'", "expected ( in column 9"),
        ("lang in ('de'", "expected one of , ) in column 14"),
        ("lang in ()", "column 10"),
        ("(lang = 'de'", "expected 'and', 'or' or ) in column 13"),
        ("lang = 'de')", "expected 'and', 'or' or the end in column 12 of the filter, got )"),
        ("not not lang = 'de'", "expected the name of a field in column 5 of the filter, got not"),
        ("()", "expected the name of a field in column 2 of the filter, got )"),
        (
            "lang = 'de' year = 1",
            "expected 'and', 'or' or the end in column 13 of the filter, got year",
        ),
        ("lang = 'de' and", "expected the name of a field in column 16"),
        ("lang not = 'de'", "expected one of in like in column 10"),
        ("or = 'de'", "expected the name of a field in column 1 of the filter, got or"),
        ("lang = 'de'; DROP TABLE fields", "column 12 of the filter, got ;"),
        ("\x1b[31m = 1", "column 1 of the filter, got ␛[31m"),
        ("(" * 14, "at most 12 parentheses within each other in column 14"),
        ("x" * 10**7, "at most 5,000 characters"),
        ({"lang": None}, "got None for lang"),
        ({"year": float("nan")}, "got nan for year"),
        ({"year": [{"a": 1}]}, "got {'a': 1} for year"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_an_error_is_named_by_its_column(where, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        read_filter(where)


def test_an_unknown_field_is_named_beside_the_known_ones(connection):
    with pytest.raises(SettingsError, match="got langu; its fields: deep, id, is open, lang"):
        passing(connection, "lang = 'de' and langu = 'de'")
    delete_fields(connection, [1, 2, 3, 4, 5])
    with pytest.raises(SettingsError, match="its fields: none"):
        passing(connection, {"lang": "de"})


def test_the_id_is_a_field_unless_a_field_is_called_so(connection):
    assert passing(connection, "id = '007'") == [4]
    delete_fields(connection, [4])
    assert passing(connection, "id like 'a%' and not id = 'a2'") == [1, 3]
    assert passing(connection, "id >= 4 or id in ('a1')") == [1, 4, 5]


def test_nothing_that_a_user_gives_is_in_the_sql():
    hostile = "x' OR 1=1) --"
    for where in (
        {hostile: hostile},
        f'"{hostile}" = "{hostile}" or "{hostile}" in ("{hostile}", 1)',
    ):
        condition = read_filter(where)
        assert "OR 1" not in condition.sql
        assert hostile in condition.values


def test_the_largest_filters_run(connection):
    deep = "lang = 'x' or not (" * MAX_DEPTH + "lang = 'de'" + ")" * MAX_DEPTH
    assert passing(connection, deep) == [1, 3]
    chain = " or ".join(["a=1"] * (MAX_CHARS // 7)).replace("a", "id", 1)
    add_fields(connection, {5: {"a": 1}})
    assert passing(connection, chain[:MAX_CHARS]) == [5]
    assert passing(connection, {"year": [2019, *range(10**5, 2 * 10**5)]}) == [1]
    assert passing(connection, {"lang": ["fr", *map(str, range(10**5))]}) == [4]


def test_half_of_a_character_is_no_error(connection):
    assert passing(connection, "lang != '\ud800'") == [1, 2, 3, 4, 5]
    assert passing(connection, {"lang": "\ud800"}) == []
