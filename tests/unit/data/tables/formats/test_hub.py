"""Data sets of the Hub, through the real library and without a network."""

import builtins
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.tables.labeled import read, read_values, refuse, write

from bertkit.base.errors import HubError, InputError, MissingExtraError
from bertkit.data.tables.formats import hub
from bertkit.data.tables.records import open_records

datasets = pytest.importorskip("datasets")


def make_splits(monkeypatch, seen=None):
    classes = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": classes,
            "tags": datasets.List(datasets.ClassLabel(names=["O", "B-X"])),
            "n": datasets.Value("int64"),
        }
    )
    rows = [
        {"text": "a", "label": 1, "tags": [0, 1], "n": 3},
        {"text": "b", "label": -1, "tags": [], "n": 4},
        {"text": None, "label": None, "tags": None, "n": None},
    ]
    dataset = datasets.Dataset.from_list(rows, features=features)
    splits = datasets.DatasetDict({"train": dataset, "validation": dataset.select([1])})

    def fetch(name, config):
        if seen is not None:
            seen.append((name, config))
        return splits

    monkeypatch.setattr(hub, "fetch_splits", fetch)


def test_classes_are_called_by_their_names(monkeypatch):
    make_splits(monkeypatch)
    table = open_records("hub:owner/name")
    assert (table.name, table.format) == ("hub:owner/name", "hub")
    assert table.columns == ("text", "label", "tags", "n")
    assert read_values("hub:owner/name") == [
        {"text": "a", "label": "pos", "tags": ["O", "B-X"], "n": 3},
        {"text": "b", "label": None, "tags": [], "n": 4},
        {"text": None, "label": None, "tags": None, "n": None},
    ]
    assert read("hub:owner/name")[0][1].place == "hub:owner/name, row 2"


def test_classes_of_its_parquet_files_are_called_by_their_names(monkeypatch, tmp_path):
    make_splits(monkeypatch)
    path = tmp_path / "train.parquet"
    hub.fetch_splits("name", None)["train"].to_parquet(path)
    expected = read_values("hub:owner/name")
    assert read_values(path) == expected
    table = pq.read_table(path)
    named = table.set_column(1, "label", pa.array(["x", "y", None]))
    pq.write_table(named, path)
    assert [row["label"] for row in read_values(path)] == ["x", "y", None]
    for metadata in (b"{", b"[]", b'{"info": {"features": {"label": 3}}}', b'{"info": null}'):
        pq.write_table(table.replace_schema_metadata({b"huggingface": metadata}), path)
        assert read_values(path)[0]["label"] == 1


def test_split_and_config_stand_in_the_address(monkeypatch):
    seen = []
    make_splits(monkeypatch, seen)
    for source, split in (
        ("hub:name@validation", "train"),
        ("hub:owner/name", "dev"),
        ("hub:owner/name/config@validation", "test"),
    ):
        assert [record.values["n"] for record in read(source, split=split)[0]] == [4]
    assert seen == [("name", None), ("owner/name", None), ("owner/name", "config")]
    refuse("hub:a/b@dev", r"hub:a/b@dev has no split dev; name one with @: train, validation")
    with pytest.raises(InputError, match=r"hub:a/b has no split test; name one with @"):
        open_records("hub:a/b", split="test")
    for wrong in ("hub:", "hub:a/b/c/d", "hub:../b c", "hub:a@b@c"):
        refuse(wrong, r"must be hub:owner/name, hub:owner/name/config or …@split")


def test_rows_are_known_again(monkeypatch):
    make_splits(monkeypatch)
    train, same = (open_records(f"hub:a/b{split}").identity for split in ("", "@train"))
    assert train["sha256"] == same["sha256"]
    assert (train["name"], train["format"]) == ("hub:a/b", "hub")
    assert train["sha256"] != open_records("hub:a/b", split="dev").identity["sha256"]


@pytest.mark.filterwarnings("ignore")
def test_the_library_itself_reads_a_folder(tmp_path, monkeypatch):
    """The real `load_dataset`: a folder of that name in the current one is a data set too."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own" / "data").mkdir(parents=True)
    write(tmp_path / "own" / "data", "train.csv", "text,label\na,x\nb,y\n")
    table = open_records("hub:own/data")
    assert [record.values for record in table.records()] == [
        {"text": "a", "label": "x"},
        {"text": "b", "label": "y"},
    ]
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    refuse("hub:no/such", r"the dataset no/such can't be fetched: ", HubError)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    real = builtins.__import__

    def refuse_datasets(name, *args, **kwargs):
        if name == "datasets":
            raise ImportError("No module named 'datasets'")
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "datasets")
    monkeypatch.setattr(builtins, "__import__", refuse_datasets)
    refuse("hub:a/b", r"can't be read \(No module .*pip install ", MissingExtraError)


def test_a_list_beside_them_leaves_classes_their_names(tmp_path):
    features = {
        "words": [{"dtype": "string"}],
        "label": {"names": ["n", "y"], "_type": "ClassLabel"},
    }
    content = json.dumps({"info": {"features": features}}).encode()
    table = pa.table({"words": [["a"]], "label": [1]})
    path = tmp_path / "old.parquet"
    pq.write_table(table.replace_schema_metadata({b"huggingface": content}), path)
    (values,) = read_values(path)
    assert values["label"] == "y"
