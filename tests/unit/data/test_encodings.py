"""What is compressed is read as far as it goes, in bounded memory."""

import io
import tracemalloc

import pytest
import zstandard
from tests.unit.data.corpora import COMPRESS, DOCUMENTS, LONG, TEXT, read, write

from bertkit.data.compression import COMPRESSIONS, unpack
from bertkit.data.problems import ReadReport


def test_each_compression_is_tested():
    assert COMPRESS.keys() == COMPRESSIONS.keys()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_frames_are_one_text(folder, suffix):
    head, tail = TEXT[:8].encode(), TEXT[8:].encode()
    content = COMPRESS[suffix](head) + COMPRESS[suffix](tail)
    assert read(write(folder / f"a{suffix}", content)) == (DOCUMENTS, ReadReport())


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_comes_before_a_missing_end_is_kept(folder, suffix):
    packed = COMPRESS[suffix](LONG.encode())
    documents, report = read(write(folder / f"a{suffix}", packed[: len(packed) * 3 // 4]))
    assert report.counts == {"truncated": 1}
    assert report.places["truncated"] == [f"in/a{suffix} (it ends too early)"]
    kept = "\n".join(documents[0])
    assert LONG.startswith(kept)
    assert len(kept) > len(LONG) // 4


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_comes_before_damage_is_kept(folder, suffix):
    good = COMPRESS[suffix](TEXT.encode())
    bad = bytearray(COMPRESS[suffix](LONG.encode()))
    bad[: len(bad) // 2] = bytes(len(bad) // 2) if suffix != ".gz" else b"\xff" * (len(bad) // 2)
    documents, report = read(write(folder / f"a{suffix}", bytes(bad)))
    assert documents == []
    assert report.counts == {"damaged": 1}
    assert report.places["damaged"][0].startswith(f"in/a{suffix} (")
    flipped = bytearray(good)
    flipped[-6] ^= 0xFF  # in each format a check of the content, or what it is made from
    _, report = read(write(folder / f"b{suffix}", bytes(flipped)))
    assert sum(report.counts.get(name, 0) for name in ("damaged", "truncated")) == 1


def test_a_zstandard_bomb_takes_bounded_memory():
    bomb = io.BytesIO(zstandard.ZstdCompressor().compress(bytes(256 << 20)))
    stream = unpack(bomb, ".zst", lambda name, cause: pytest.fail(cause))
    num_bytes = 0
    tracemalloc.start()
    while content := stream.read(1 << 20):
        num_bytes += len(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_bytes == 256 << 20
    assert peak < 100 << 20
