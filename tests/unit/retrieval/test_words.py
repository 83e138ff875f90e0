"""Full text finds any word of any query in any script, in bounded work."""

import sqlite3

import pytest
from tests.closeness import assert_close

from bertkit.retrieval import words
from bertkit.retrieval.filters import Condition
from bertkit.retrieval.words import (
    LEAST_SCORE,
    MAX_QUERY_WORDS,
    UNICODE,
    add_words,
    choose_tokenizer,
    create_words,
    delete_words,
    find_words,
)

ENGLISH = "I mended the tires of my bicycle yesterday, and left my old pump in a shed."
GERMAN = "Gestern flickte ich die Reifen meines Fahrrads; die Pumpe ist noch im Schuppen."


def index(*texts, tokenizer=UNICODE):
    connection = sqlite3.connect(":memory:")
    create_words(connection, tokenizer)
    add_words(connection, enumerate(texts, start=1))
    return connection


def rows(connection, query, num=10, where=None):
    return [row for row, _ in find_words(connection, query, num, where)]


def test_the_best_rows_of_any_word_come_first_and_ties_by_row():
    connection = index("a mended tire", "a tire", "a bicycle", "mend the tire", "nothing", "a tire")
    found = find_words(connection, "tire mended", 10)
    assert [row for row, _ in found] == [1, 2, 6, 4]
    assert found[0][1] > found[1][1] > 0
    assert_close(found[1][1], found[2][1])
    assert rows(connection, "tire mended", num=2) == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        *('"tire', "tire AND", "tire NOT tire", "NEAR(tire, 2", "text:tire", "-tire", "^tire*"),
        *(
            "tire' --",
            "(tire",
            "tire\0",
            "tire 🚲",
            "\ud800tire",
            "ＴＩＲＥ",
            "ti\u0301re",
            "words:tire",
        ),
        "tire " + "x " * 5_000_000,
    ],
    ids=lambda query: ascii(query[:16]),
)
def test_a_query_is_text(query):
    assert rows(index("a tire", "other"), query) == [1]


@pytest.mark.parametrize(
    "query", ["", " ", "🚲", '"', "*", "・", "\u0e31", "AND", "unknown", "x" * 10**7]
)
def test_a_query_without_a_word_of_the_texts_finds_nothing(query):
    assert rows(index("a tire", "・"), query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        *(("轮胎", [1]), ("修", [1]), ("修理轮胎的工具", [1, 2]), ("自転車", [3]), ("タイヤ", [3])),
        *(
            ("ﾀｲﾔ", [3]),
            ("車", [3]),
            ("ยาง", [4]),
            ("จักร", [4]),
            ("ย", [4]),
            ("रबर", [5]),
            ("फटा", []),
        ),
    ],
)
def test_scripts_without_spaces_are_found_by_their_characters(query, expected):
    connection = index(
        "我怎么修理自行车的轮胎?",
        "打开工具箱",
        "自転車のタイヤを直す",
        "เปลี่ยนยางรถจักรยาน",
        "साइकिल का रबर",
    )
    assert rows(connection, query) == expected


def test_the_parts_of_a_longer_phrase_rank_the_text_that_has_most_of_them_first():
    assert rows(index("自行", "自行车轮胎", "轮胎"), "自行车轮胎")[0] == 2


def test_words_of_most_rows_are_told_from_others_by_their_score():
    most = " ".join(f"word{number}" for number in range(2 * MAX_QUERY_WORDS))
    connection = index(most, most, most, "odd", "row")
    one, most_of_all, odd = (
        find_words(connection, query, 1)[0][1] for query in ("word1", most, "odd")
    )
    assert 0 < one < most_of_all < LEAST_SCORE < odd


def test_deleted_rows_are_found_no_more():
    texts = ["a tire", "ยาง 轮胎", "a tire"]
    connection = index(*texts)
    delete_words(connection, [(1, texts[0]), (2, texts[1])])
    assert rows(connection, "tire 轮胎 ยาง") == [3]
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def test_english_is_stemmed_and_other_languages_are_not():
    english = choose_tokenizer([ENGLISH])
    assert rows(index("mended tires", tokenizer=english), "mending a tire") == [1]
    for text in (GERMAN, "我怎么修理自行车的轮胎?", "mend 01 tire", ""):
        assert choose_tokenizer([text]) == UNICODE
    assert choose_tokenizer([GERMAN, ENGLISH, GERMAN, GERMAN]) == UNICODE


@pytest.fixture
def low_limits(monkeypatch):
    monkeypatch.setattr(words, "MAX_SCORED", 10)
    monkeypatch.setattr(words, "MAX_READ", 60)
    monkeypatch.setattr(words, "LIMITS", (2, 20, 60))


def test_common_words_only_score_the_rows_of_rare_ones_or_are_left_out(low_limits):
    texts = [f"all {'half' * (row % 2)} {'tenth' * (row % 10 == 3)}" for row in range(100)]
    connection = index(*texts, "rare half long long", "rare long long long", "odd all")
    assert rows(connection, "rare half odd all", 3) == [103, 101, 102]
    assert rows(connection, "rare half odd all", 200)[:4] == [103, 101, 102, 2]
    assert sorted(rows(connection, "half none", 200)) == [*range(2, 101, 2), 101]
    assert words._choose(connection, ["all", "half", "rare", "tenth", "none"]) == (
        ["rare"],
        ["tenth"],
    )
    assert sorted(rows(connection, "all", 200)) == list(range(1, 61))


def test_candidates_are_scored_as_by_all_words(low_limits, monkeypatch):
    texts = ["a tire", "a tire tire pump", "a pump a", "a bell", *["a pump"] * 30, *["b"] * 40]
    bounded = find_words(index(*texts), "tire bell pump", 3)
    monkeypatch.undo()
    assert words._choose(index(*texts), ["tire", "bell", "pump"])[1] == []
    assert_close(bounded, find_words(index(*texts), "tire bell pump", 3))


def test_function_words_of_english_count_only_where_there_are_no_others():
    texts = ["what is it about", "a tire", "the pump"]
    english = index(*texts, tokenizer=choose_tokenizer([ENGLISH]))
    assert rows(english, "what is a Tire?") == [2]
    assert rows(english, "what is it") == [1]
    assert rows(english, "what is an unknown") == []
    assert sorted(rows(index(*texts), "what tire")) == [1, 2]


def test_only_rows_of_documents_that_pass_are_found():
    connection = index("a tire", "a tire", "a tire")
    connection.executescript(
        "CREATE TABLE documents (number INTEGER PRIMARY KEY);"
        "CREATE TABLE passages (row INTEGER PRIMARY KEY, document INTEGER);"
        "INSERT INTO documents VALUES (10), (20);"
        "INSERT INTO passages VALUES (1, 10), (2, 20), (3, 20)"
    )
    assert rows(connection, "tire", where=Condition("documents.number = ?", (20,))) == [2, 3]
    assert rows(connection, "tire", num=1, where=Condition("documents.number = ?", (20,))) == [2]


def test_common_words_find_rows_where_no_row_with_a_rare_one_passes(low_limits):
    connection = index(*["beta"] * 30, *["gamma"] * 35, "alpha beta")
    connection.executescript(
        "CREATE TABLE documents (number INTEGER PRIMARY KEY);"
        "CREATE TABLE passages (row INTEGER PRIMARY KEY, document INTEGER);"
        "INSERT INTO documents VALUES (10); INSERT INTO passages VALUES (1, 10), (30, 10)"
    )
    assert rows(connection, "alpha beta", where=Condition("1", ())) == [1, 30]
    assert len(rows(connection, "alpha beta")) == 10


@pytest.mark.parametrize("word", ["ᏣᎳᎩ", "𐓏𐓘", "𞤀𞤁", "ꞬꞮ", "İŞ"])
def test_capitals_are_found_in_any_script(word):
    assert rows(index("other", word), word) == rows(index("other", word), word.lower()) == [2]
