"""Reading of passages, queries and judgments."""

import gzip
import json

import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.recipes.evaluate.judged_set import JudgedSet
from bertkit.recipes.settings import EvaluateSettings

CORPUS = [{"_id": "a", "title": "The cat", "text": "sat."}, {"_id": "b", "text": "A dog ran."}]
QUERIES = [{"_id": "1", "text": "cat?"}, {"_id": "2", "text": "dog?"}]
QRELS = [
    {"query-id": "1", "corpus-id": "a", "score": 2},
    {"query-id": "2", "corpus-id": "b", "score": 1},
]


def read(corpus=CORPUS, queries=QUERIES, qrels=QRELS, **settings):
    return JudgedSet.read([corpus, queries, qrels], EvaluateSettings(**settings))


def write_jsonl(path, rows):
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_titles_stand_before_texts_and_relevance_is_graded():
    judged = read()
    assert judged.corpus == {"a": "The cat sat.", "b": "A dog ran."}
    assert judged.queries == {"1": "cat?", "2": "dog?"}
    assert judged.relevance == {"1": {"a": 2.0}, "2": {"b": 1.0}}
    assert judged.problems == []


@pytest.mark.parametrize(
    "lines",
    [
        ["query-id\tcorpus-id\tscore", "1\ta\t2", "2\tb\t1"],
        ["1\ta\t2", "2\tb\t1"],
        ["1\t0\ta\t2", "2\t0\tb\t1"],  # as trec_eval reads them
        ["1 0 a 2", "2  0  b 1"],
        ["1\ta\t2.0", "2\tb\t1.0"],
    ],
)
def test_files_as_data_sets_have_them(tmp_path, lines):
    (tmp_path / "qrels.tsv").write_text("".join(f"{line}\n" for line in lines))
    judged = read(
        write_jsonl(tmp_path / "corpus.jsonl.gz", CORPUS),
        write_jsonl(tmp_path / "queries.jsonl", QUERIES),
        tmp_path / "qrels.tsv",
    )
    assert judged.relevance == read().relevance
    assert judged.identities["corpus"]["name"] == "corpus.jsonl.gz"
    assert judged.name == str(tmp_path / "qrels.tsv")


def test_what_is_unknown_is_counted():
    odd = [
        *QRELS,
        {"query-id": "9", "corpus-id": "a", "score": 1},
        {"query-id": "1", "corpus-id": "z", "score": 1},
    ]
    judged = read(queries=[*QUERIES, {"_id": "3", "text": "bird?"}], qrels=odd)
    assert judged.problems == [
        "qrels: 1 of 4 judgments name a query that isn't among the queries: left out",
        "qrels: 1 of 4 judgments name a passage that the corpus lacks: counted as not found",
        "queries: 1 of 3 queries without a relevant passage, left out",
    ]
    assert judged.relevance["1"] == {"a": 2.0, "z": 1.0}
    assert list(judged.queries) == ["1", "2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": QUERIES}, "name a passage that the corpus lacks; are the three files"),
        ({"queries": CORPUS}, "name a query that isn't among the queries; are the three files"),
        ({"qrels": QUERIES}, "has no column query-id, query_id, qid or query; rename one"),
        ({"corpus": [{"text": "a"}]}, "corpus has no column _id, id,"),
        ({"corpus": [CORPUS[0], CORPUS[0]]}, "has the id of an earlier row: 'a'"),
        ({"corpus": [{"_id": "", "text": "x"}]}, "has no id in _id"),
        ({"qrels": [{**QRELS[0], "score": "x"}]}, "has no number in score"),
        ({"qrels": [{**QRELS[0], "score": float("nan")}]}, "has no number in score"),
        ({"qrels": [QRELS[0], QRELS[0]]}, "judges the same passage again"),
        ({"qrels": [{**QRELS[0], "score": 0}]}, "no query has a relevant passage"),
    ],
)
def test_wrong_files_are_refused(changes, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        read(**changes, max_broken=0.0)


def test_settings_of_one_table_are_refused():
    with pytest.raises(SettingsError, match="a format of its own; leave out --delimiter, --format"):
        read(format="csv", delimiter=";")


def test_judgments_may_have_any_name_and_equal_cells(tmp_path):
    texts = [{"_id": number, "text": "x"} for number in range(2)]
    (tmp_path / "cran.qrels").write_text("0 0 0 1\n1 0 1 1\n")
    judged = read(texts, texts, tmp_path / "cran.qrels")
    assert judged.relevance == {"0": {"0": 1.0}, "1": {"1": 1.0}}
    (tmp_path / "cran.txt").write_text("1\t1\t1\n0\t0\tmuch\n")
    with pytest.raises(InputError, match="line 2 has no number in text"):
        read(texts, texts, tmp_path / "cran.txt", max_broken=0.0)
