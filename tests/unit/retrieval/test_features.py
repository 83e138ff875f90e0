"""Files of features hold what the extractor gives, whole or not at all."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from bertkit.base.checksummed_json import read_checksummed_json
from bertkit.base.errors import InputError, SettingsError, StorageError
from bertkit.inference.embeddings.features import FeatureExtractor, TextFeatures
from bertkit.retrieval import feature_writers
from bertkit.retrieval.features import (
    FeaturesResult,
    FeatureStream,
    check_output,
    extract,
    print_features,
    split_pair,
)
from bertkit.retrieval.settings import FeaturesSettings

ROWS = ["the cat saw a dog .", "", "a ||| hat", 'the "hat" é', "the " * 40]
SINGLE = {"engine": "torch"}
APART = {"engine": "torch", "combine": "none", "layers": (-1, 0)}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")
    return path


def write(model: Path, source: Path, output: Path, **settings: object) -> FeaturesResult:
    return extract(model, source, output, FeaturesSettings(**settings, device="cpu"))


def expect(model: Path, **settings: object) -> list[TextFeatures]:
    engine = settings.pop("engine", "auto")
    return FeatureExtractor.load(model, device="cpu", engine=engine)(list(ROWS), **settings)


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_jsonl_has_each_number_to_the_last_bit(model, source, tmp_path):
    output = tmp_path / "features.jsonl"
    write(model, source, output, **SINGLE)
    for row, (found, expected) in enumerate(
        zip(read_lines(output), expect(model, **SINGLE), strict=True)
    ):
        assert list(found) == [
            *["row", "tokens", "token_type_ids", "offsets", "truncated", "features", "c", "c_from"]
        ]
        assert (found["row"], found["c_from"]) == (row, "pooler")
        assert found["tokens"] == expected.encoding.tokens
        assert found["token_type_ids"] == expected.encoding.token_type_ids
        assert found["offsets"] == [list(span) for span in expected.encoding.offsets]
        assert found["truncated"] is (row == 4)
        assert np.array_equal(np.float32(found["features"]), expected.features)
        assert np.array_equal(np.float32(found["c"]), expected.sequence)
    assert " ||| " not in read_lines(output)[2]["tokens"]


def test_layers_apart_have_a_column_each(model, source, tmp_path):
    lines, table = tmp_path / "features.jsonl", tmp_path / "features.parquet"
    write(model, source, lines, **APART)
    write(model, source, table, **APART)
    columns = pq.read_table(table).to_pylist()
    for line, row, expected in zip(read_lines(lines), columns, expect(model, **APART), strict=True):
        for number, name in enumerate(["layer_2", "layer_0"]):
            assert np.array_equal(np.float32(line[name]), expected.features[:, number])
            assert np.array_equal(np.float32(row[name]), expected.features[:, number])
        assert "features" not in line
        assert "features" not in row


@pytest.mark.parametrize("group_bytes", [1, 1000, 1 << 26])
def test_parquet_has_a_row_a_text_in_groups(model, source, tmp_path, monkeypatch, group_bytes):
    monkeypatch.setattr(feature_writers, "GROUP_BYTES", group_bytes)
    output = tmp_path / "features.parquet"
    result = write(model, source, output, **SINGLE)
    file = pq.ParquetFile(output)
    assert file.num_row_groups == {1: 5, 1000: 2, 1 << 26: 1}[group_bytes]
    assert json.loads(file.schema_arrow.metadata[b"bertkit"]) == {
        **result.identity,
        "layers": [2, 1],
    }
    rows = file.read().to_pylist()
    for number, (row, expected) in enumerate(zip(rows, expect(model, **SINGLE), strict=True)):
        assert (row["row"], row["truncated"]) == (number, number == 4)
        assert row["tokens"] == expected.encoding.tokens
        assert row["token_type_ids"] == expected.encoding.token_type_ids
        spans = list(zip(row["starts"], row["ends"], strict=True))
        assert spans == expected.encoding.offsets
        assert np.array_equal(np.float32(row["features"]), expected.features)
        assert np.array_equal(np.float32(row["c"]), expected.sequence)


def test_ids_travel_with_texts(model, tmp_path):
    source, lines, table = (tmp_path / name for name in ("in.csv", "f.jsonl", "f.parquet"))
    source.write_text("".join(f"{row}\n" for row in ("key,text", "x,a hat", "y,the cat", "z,")))
    for output in (lines, table):
        write(model, source, output, id_column="key", **SINGLE)
    for rows in (read_lines(lines), pq.read_table(table).to_pylist()):
        assert list(rows[0])[:3] == ["row", "id", "tokens"]
        assert [(row["id"], len(row["tokens"])) for row in rows] == [("x", 4), ("y", 4), ("z", 2)]
    with pytest.raises(ValidationError, match="google has no room for ids"):
        FeaturesSettings(id_column="key", combine="none", output_format="google")


def test_no_texts_are_an_empty_file(model, source, tmp_path):
    source.write_text("")
    for name in ("features.jsonl", "features.parquet"):
        result = write(model, source, tmp_path / name, **SINGLE)
        assert (result.counts.texts, result.shape) == (0, (16,))
    assert (tmp_path / "features.jsonl").read_bytes() == b""
    assert pq.read_table(tmp_path / "features.parquet").num_rows == 0


def test_the_layout_of_google_has_its_keys(model, source):
    lines: list[str] = []
    settings = FeaturesSettings(**APART, device="cpu", output_format="google")
    print_features(FeatureStream(model, source, settings), lines.append)
    expected = expect(model, **APART)
    for row, found in enumerate(map(json.loads, lines)):
        assert list(found) == ["linex_index", "features"]
        assert found["linex_index"] == row
        assert [each["token"] for each in found["features"]] == expected[row].encoding.tokens
        for token, each in enumerate(found["features"]):
            assert list(each) == ["token", "layers"]
            assert [layer["index"] for layer in each["layers"]] == [-1, 0]
            for number, layer in enumerate(each["layers"]):
                values = expected[row].features[token, number]
                assert layer["values"] == [round(float(value), 6) for value in values]


def test_a_manifest_tells_what_features_depend_on(model, source, tmp_path):
    output = tmp_path / "features.jsonl"
    source.write_bytes(b"a\xff hat\n\n")
    result = write(model, source, output, pair_separator=" ||| ", **SINGLE)
    manifest = read_checksummed_json(tmp_path / "features.jsonl.json")
    assert manifest["features"] == {**result.identity, "layers": [2, 1]}
    assert manifest["input"]["name"] == "texts.txt"
    assert (manifest["pair_separator"], manifest["shape"]) == (" ||| ", [16])
    assert manifest["counts"]["undecodable"] == manifest["counts"]["empty"] == 1
    assert manifest["size_bytes"] == output.stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *["features.jsonl", "features.jsonl.json", "texts.txt"]
    ]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("one ||| two", ("one", "two")),
        ("a ||| b ||| c", ("a ||| b", "c")),
        (" ||| ", ("", "")),
        ("one|||two", "one|||two"),
        ("", ""),
    ],
)
def test_a_pair_is_cut_at_the_last_sign(row, expected):
    assert split_pair(row, " ||| ") == expected


@pytest.mark.parametrize("name", ["features.jsonl", "features.parquet"])
def test_what_fails_leaves_the_older_file(model, source, tmp_path, name):
    output, broken = tmp_path / name, tmp_path / "broken.jsonl"
    write(model, source, output, **SINGLE)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    broken.write_text('{"text": "a hat"}\n{"text": 5}\n')
    with pytest.raises(InputError, match=r"broken\.jsonl, row 2"):
        write(model, broken, output, **SINGLE, overwrite=True)
    broken.unlink()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_manifest_that_a_killed_command_left_alone_is_written_again(model, source, tmp_path):
    output = tmp_path / "features.jsonl"
    write(model, source, output, **SINGLE)
    with pytest.raises(SettingsError, match=r"features\.jsonl exists"):
        check_output(str(source), output, FeaturesSettings())
    output.unlink()
    check_output(str(source), output, FeaturesSettings())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("features.npz", {}, r"must end with \.jsonl or \.parquet"),
        ("features", {}, r"must end with \.jsonl or \.parquet"),
        (
            "features.parquet",
            {"output_format": "google", "combine": "none"},
            r"features\.parquet must end with \.jsonl for google",
        ),
        ("old.jsonl", {}, r"old\.jsonl exists; name another file, or replace it"),
        ("told.jsonl", {}, r"told\.jsonl\.json exists; name another"),
        ("folder.jsonl", {"overwrite": True}, "is a folder; name a file"),
        ("a" * 300 + ".jsonl", {}, "can't be written: File name too long"),
        ("input.jsonl", {"overwrite": True}, "input.jsonl.json is the input, and would be overw"),
    ],
)
def test_outputs_that_cannot_be_meant_are_refused(tmp_path, name, settings, message):
    for existing in ("old.jsonl", "told.jsonl.json", "input.jsonl.json"):
        (tmp_path / existing).write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises((SettingsError, StorageError), match=message):
        check_output(
            str(tmp_path / "input.jsonl.json"), tmp_path / name, FeaturesSettings(**settings)
        )
