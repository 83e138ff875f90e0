"""The formats of vectors: NumPy, Parquet and JSON lines."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from bertkit.base.files import DurableFile
from bertkit.data.writers import build_schema, write_lines, write_tables
from bertkit.retrieval.vector_file import Vectors

if TYPE_CHECKING:
    import pyarrow as pa

Ids = Sequence[str] | None
Block = tuple[int, Vectors, Ids]  # the number of its first row, from 0
Writer = Callable[[DurableFile, Iterable[Block], int, dict[str, Any]], None]


def write_jsonl(file: DurableFile, blocks: Iterable[Block], _: int, __: dict[str, Any]) -> None:
    """Write one line per row: `{"row": 0, "embedding": [0.1, …]}`, with its id if it has one."""
    write_lines(
        file, (line for first, rows, ids in blocks for line in format_rows(rows, first, ids))
    )


def format_rows(rows: Vectors, first_row: int, ids: Ids = None) -> Iterator[str]:
    """Yield JSONL lines without newlines; numbers in their shortest float32 round-trip form."""
    for index, row in enumerate(rows):
        named = "" if ids is None else f', "id": {json.dumps(ids[index], ensure_ascii=False)}'
        values = ", ".join(row.astype(str).tolist())
        yield f'{{"row": {first_row + index}{named}, "embedding": [{values}]}}'


def write_parquet(
    file: DurableFile, blocks: Iterable[Block], dimension: int, metadata: dict[str, Any]
) -> None:
    """Write columns `row` (int64), `embedding` (fixed_size_list<float32>) and JSON metadata.

    Rows with ids have a column `id` (string) between these.
    """
    import pyarrow as pa

    kind = pa.list_(pa.float32(), dimension)
    some = list(islice(blocks := iter(blocks), 1))
    types = {"row": pa.int64(), "id": pa.string(), "embedding": kind}
    if not some or some[0][2] is None:
        del types["id"]
    schema = build_schema(
        (pa.field(name, each, nullable=False) for name, each in types.items()), metadata
    )

    def build_table(first: int, rows: Vectors, ids: Ids) -> "pa.Table":
        columns = {
            "row": pa.array(np.arange(first, first + len(rows))),
            "id": ids,
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=kind),
        }
        return pa.table({name: columns[name] for name in types}, schema=schema)

    tables = starmap(build_table, chain(some, blocks))
    write_tables(file, schema, tables, compression="none", use_dictionary=False)


# None: the unfinished rows already are a .npy file, which is renamed.
VECTOR_WRITERS: dict[str, Writer | None] = {
    ".npy": None,
    ".parquet": write_parquet,
    ".jsonl": write_jsonl,
}
