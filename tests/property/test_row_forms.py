"""Rows are the same examples in whatever form they come: files, tables, data frames, lists."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import LIST_BEGINS
from bertkit.tasks.texts import Texts

Rows = list[dict[str, Any]]

LETTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(
    list("\n\r\t\xa0\"',;[|")
)
TEXTS = st.text(LETTERS, max_size=6).filter(lambda text: text.strip() != "text")
NAMES = st.text(LETTERS, min_size=1, max_size=4).map(str.strip).filter(bool)
LABELS = NAMES.filter(lambda name: not LIST_BEGINS.match(name))
KINDS = {
    "text": LABELS,
    "integer": st.integers(-9, 9),
    "float": st.integers(-9, 9).map(float) | st.sampled_from([0.5, -1.25]),
    "list": st.lists(NAMES, max_size=3),
    "integers": st.lists(st.integers(-9, 9), max_size=3),
}


def write_separated(rows: Rows, mark: str, **dialect: Any) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=mark, lineterminator="\n", **dialect)
    writer.writerows([rows[0].keys(), *(row.values() for row in rows)])
    return buffer.getvalue().encode()


def write_tsv(rows: Rows) -> bytes | None:
    """TSV, unless a cell has what TSV can't."""
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    if any("\t" in cell or "\n" in cell for line in cells for cell in line):
        return None
    return "".join("\t".join(line) + "\r\n" for line in cells).encode()


def write_parquet(rows: Rows) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


FILES: dict[str, Callable[[Rows], bytes | None]] = {
    "a.csv": lambda rows: write_separated(rows, ","),
    "quoted.csv": lambda rows: write_separated(rows, ",", quoting=csv.QUOTE_ALL),
    "semicolons.csv": lambda rows: write_separated(rows, ";"),
    "pandas.csv": lambda rows: pd.DataFrame(rows).to_csv(index=False).encode(),
    "a.tsv": write_tsv,
    "a.jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "raw.jsonl": lambda rows: "\n".join(json.dumps(r, ensure_ascii=False) for r in rows).encode(),
    "a.json": lambda rows: json.dumps(rows).encode(),
    "a.parquet": write_parquet,
}


def list_forms(rows: Rows, folder: Path) -> Iterator[tuple[str, Any]]:
    """All forms of rows by name: files in the folder, and objects."""
    for name, pack in FILES.items():
        content = pack(rows)
        if content is not None:
            (folder / name).write_bytes(content)
            yield name, folder / name
    yield "mappings", rows
    yield "tuples", [tuple(row.values()) for row in rows]
    yield "Arrow", pa.Table.from_pylist(rows)
    yield "pandas", pd.DataFrame(rows)
    yield "datasets", datasets.Dataset.from_list(rows)
    if find_spec("polars"):
        import polars as pl

        yield "polars", pl.DataFrame(rows)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data(), has_pair=st.booleans())
def test_every_form_of_rows_gives_the_same_examples(tmp_path_factory, kind, data, has_pair):
    columns = {"text": TEXTS} | ({"pair": TEXTS} if has_pair else {}) | {"label": KINDS[kind]}
    cells = data.draw(st.lists(st.tuples(*columns.values()), min_size=1, max_size=5))
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    chosen = ClassifySettings(
        pair_column="pair" if has_pair else None,
        multi_label=kind in {"list", "integers"},
        label_separator="\N{SNOWMAN}",
    )
    examples: dict[str, list[Any]] = {}
    records: dict[str, list[Any]] = {}
    for name, form in list_forms(rows, tmp_path_factory.mktemp("forms")):
        table = open_records(form, RecordSettings(max_broken=0.0))
        parse = ClassifyExample.build_parser(chosen, table, needs_answer=True)
        found = table.read(parse)
        examples[name] = [(example.texts, example.labels) for example in found]
        records[name] = [dict(record.values) for record in table.records()]

    texts = [Texts(row["text"], row.get("pair")) for row in rows]
    assert [text for text, _ in examples["mappings"]] == texts
    for name, found in examples.items():
        assert found == examples["mappings"], name
        assert kind != "text" or records[name] == rows, name
