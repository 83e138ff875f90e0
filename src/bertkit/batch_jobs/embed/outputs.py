"""Output formats of vectors, by file extension."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.base.durable_stream import DurableStream
from bertkit.base.errors import SettingsError
from bertkit.base.files import DurableFile
from bertkit.batch_jobs.embed.unfinished import Vectors

METADATA_KEY = b"bertkit"

Writer = Callable[[DurableFile, Iterable[Vectors], int, dict[str, Any]], None]


def write_jsonl(file: DurableFile, blocks: Iterable[Vectors], _: int, __: dict[str, Any]) -> None:
    """Write one line per row: `{"row": 0, "embedding": [0.1, …]}`."""
    num_rows = 0
    for rows in blocks:
        for line in format_rows(rows, num_rows):
            file.write(f"{line}\n".encode())
        num_rows += len(rows)


def format_rows(rows: Vectors, first_row: int) -> Iterator[str]:
    """Yield JSONL lines without newlines; numbers in their shortest float32 round-trip form."""
    for number, row in enumerate(rows, first_row):
        yield f'{{"row": {number}, "embedding": [{", ".join(row.astype(str).tolist())}]}}'


def write_parquet(
    file: DurableFile, blocks: Iterable[Vectors], dimension: int, metadata: dict[str, Any]
) -> None:
    """Write columns `row` (int64), `embedding` (fixed_size_list<float32>) and JSON metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.list_(pa.float32(), dimension)
    schema = pa.schema(
        [pa.field("row", pa.int64(), nullable=False), pa.field("embedding", kind, nullable=False)],
        metadata={METADATA_KEY: json.dumps(metadata).encode()},
    )
    num_rows = 0
    with pq.ParquetWriter(
        DurableStream(file), schema, compression="none", use_dictionary=False
    ) as writer:
        for rows in blocks:
            numbers = pa.array(np.arange(num_rows, num_rows + len(rows)))
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=kind)
            writer.write_table(pa.table([numbers, vectors], schema=schema))
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
