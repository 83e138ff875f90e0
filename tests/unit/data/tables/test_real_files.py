"""Labeled files that others made are read to the last row, with nothing left out."""

import pytest
from tests.unit.data.tables.labeled import read_values

from bertkit.data.tables.records import open_records

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize(
    ("split", "num_sentences", "num_words"),
    [("train", 3394, 62730), ("dev", 1009, 15733), ("test", 1287, 23394)],
)
def test_wnut17(shared_data, split, num_sentences, num_words):
    values = read_values(shared_data / "tasks" / "wnut17" / f"{split}.conll")
    assert len(values) == num_sentences
    assert sum(len(cells["tokens"]) for cells in values) == num_words
    kinds = {tag[2:] for cells in values for tag in cells["tags"] if tag != "O"}
    assert kinds == {"corporation", "creative-work", "group", "location", "person", "product"}


@pytest.mark.parametrize(("split", "count"), [("train", 925), ("dev", 265)])
def test_squad(shared_data, split, count):
    path = shared_data / "tasks" / "squad" / f"{split}.json"
    assert open_records(path).format == "json"
    values = read_values(path)
    assert len({cells["id"] for cells in values}) == len(values) == count
    for cells in values:
        assert not cells["is_impossible"]
        for answer in cells["answers"]:
            start = answer["answer_start"]
            assert cells["context"][start : start + len(answer["text"])] == answer["text"]
