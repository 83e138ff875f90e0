"""Output formats of vectors, by file extension."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.base.durable_stream import DurableStream
from bertkit.base.errors import SettingsError
from bertkit.base.files import DurableFile
from bertkit.batch_jobs.embed.unfinished import Vectors

METADATA_KEY = b"bertkit"

Ids = Sequence[str] | None
Block = tuple[Vectors, Ids]
Writer = Callable[[DurableFile, Iterable[Block], int, dict[str, Any]], None]


def write_jsonl(file: DurableFile, blocks: Iterable[Block], _: int, __: dict[str, Any]) -> None:
    """Write one line per row: `{"row": 0, "embedding": [0.1, …]}`, with its id if it has one."""
    num_rows = 0
    for rows, ids in blocks:
        for line in format_rows(rows, num_rows, ids):
            file.write(f"{line}\n".encode())
        num_rows += len(rows)


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
    import pyarrow.parquet as pq

    kind = pa.list_(pa.float32(), dimension)
    first = next(blocks := iter(blocks), None)
    types = {"row": pa.int64(), "id": pa.string(), "embedding": kind}
    if first is None or first[1] is None:
        del types["id"]
    schema = pa.schema(
        [pa.field(name, each, nullable=False) for name, each in types.items()],
        metadata={METADATA_KEY: json.dumps(metadata).encode()},
    )
    num_rows = 0
    with pq.ParquetWriter(
        DurableStream(file), schema, compression="none", use_dictionary=False
    ) as writer:
        for rows, ids in chain([] if first is None else [first], blocks):
            columns = {
                "row": pa.array(np.arange(num_rows, num_rows + len(rows))),
                "id": ids,
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=kind),
            }
            writer.write_table(pa.table({name: columns[name] for name in types}, schema=schema))
            num_rows += len(rows)


# None: the unfinished rows already are a .npy file, which is renamed.
WRITERS: dict[str, Writer | None] = {
    ".npy": None,
    ".parquet": write_parquet,
    ".jsonl": write_jsonl,
}


def choose_writer(output: Path) -> Writer | None:
    """Return the writer of an output; None if renaming the file of unfinished rows suffices."""
    ending = output.suffix.lower()
    if ending not in WRITERS:
        raise SettingsError(f"{output} must end with {', '.join(WRITERS)}, which sets its format")
    return WRITERS[ending]
