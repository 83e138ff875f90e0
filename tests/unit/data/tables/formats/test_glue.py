"""The folders of GLUE are known by their columns."""

import pytest
from tests.unit.data.tables.labeled import read, refuse, write

from bertkit.base.errors import MissingFileError
from bertkit.data.tables.formats import glue
from bertkit.data.tables.records import open_records

# The first lines of the files as they are distributed, by task.
HEADERS = {
    "SST-2": ("sentence\tlabel", "index\tsentence"),
    "MRPC": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
    ),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "id\tquestion1\tquestion2"),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
    ),
    "MNLI": (
        "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence1\tsentence2",
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "index\tquestion\tsentence"),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
}


@pytest.mark.parametrize("task", HEADERS)
def test_columns_have_their_roles(tmp_path, task):
    train, test = HEADERS[task]
    suffix = "_matched" if task == "MNLI" else ""
    for name, header in (("train", train), (f"dev{suffix}", train), (f"test{suffix}", test)):
        cells = "\t".join(f"<{column}>" for column in header.split("\t"))
        write(tmp_path, f"{name}.tsv", f"{header}\n{cells}\n")
    layout = glue.LAYOUTS[task]
    pair = {"pair": layout.pair} if layout.pair else {}
    for split in ("train", "dev"):
        table = open_records(tmp_path, split=split)
        assert table.roles == {"text": layout.text, **pair, "label": layout.label}
    table = open_records(tmp_path, split="test")
    assert table.roles == {"text": layout.text, **pair}
    assert (table.format, table.name) == ("tsv", str(tmp_path / f"test{suffix}.tsv"))
    (record,), _ = read(tmp_path, split="test")
    assert record.values[layout.text] == f"<{layout.text}>"


def test_cola_has_no_header_but_in_test(tmp_path):
    assert {*HEADERS, "CoLA"} == set(glue.LAYOUTS)
    write(tmp_path, "train.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tFriends our.\n")
    write(tmp_path, "test.tsv", "index\tsentence\n0\tBill.\n")
    table = open_records(tmp_path)
    assert table.roles == {"text": "4", "label": "2"}
    found, report = read(tmp_path)
    assert [record.values["2"] for record in found] == ["1", "0"]
    assert report.num_broken == 0
    assert open_records(tmp_path, split="test").roles == {"text": "sentence"}


def test_other_files_and_columns(tmp_path):
    refuse(tmp_path, r"has no train\.tsv, .*; it has no TSV file; name a file", MissingFileError)
    write(tmp_path, "dev_mismatched.tsv", HEADERS["MNLI"][0] + "\n")
    write(tmp_path, "readme.txt", "")
    refuse(tmp_path, r"has no train\.tsv, .*; it has dev_mismatched\.tsv; name", MissingFileError)
    assert open_records(tmp_path, split="dev_mismatched").roles["label"] == "gold_label"
    write(tmp_path, "train.tsv", "words\tclass\na\tb\n")
    assert open_records(tmp_path).roles == {}
    assert open_records(tmp_path).columns == ("words", "class")
    write(tmp_path, "train.tsv", "")
    assert open_records(tmp_path).columns is None
