"""Verified reads of a mapping that threads share."""

from concurrent.futures import ThreadPoolExecutor
from mmap import ACCESS_READ, mmap

import numpy as np
import pytest

from bertkit.base.checksums import CHUNK_BYTES
from bertkit.base.errors import DamagedFileError
from bertkit.base.files import write_file
from bertkit.data.mapped_array import MappedArray

NUM_CHUNKS = 24


def test_threads_verify_one_mapping(tmp_path):
    path = tmp_path / "texts.bin"
    content = np.random.default_rng(0).bytes(NUM_CHUNKS * CHUNK_BYTES - 5)
    record = write_file(path, content)
    with path.open("rb") as stream, ThreadPoolExecutor(4) as threads:
        mapped = mmap(stream.fileno(), 0, access=ACCESS_READ)
        for _ in range(3):
            array = MappedArray(path, record, 0)
            starts = [number * CHUNK_BYTES for number in range(NUM_CHUNKS)]
            list(threads.map(lambda start: array.verify(start, start + 1, mapped), starts))  # noqa: B023
    path.write_bytes(content[:-1] + b"!")
    with path.open("rb") as stream:
        mapped = mmap(stream.fileno(), 0, access=ACCESS_READ)
        array = MappedArray(path, record, 0)
        array.verify(0, 1, mapped)
        with pytest.raises(DamagedFileError):
            array.verify(len(content) - 1, len(content), mapped)
