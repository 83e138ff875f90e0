import io
import mmap
import re
import struct
import zipfile
from pathlib import Path

import pytest
import torch
from tests.pickles import pack

from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.checkpoints.pytorch import zip_archive
from bertkit.checkpoints.pytorch.zip_archive import CENTRAL, END, LOCAL, ZipEntry, read_zip_entries

CONTENT = {"a/data.pkl": b"pickle", "a/data/0": b"\x00\x01\x02\x03", "a/é": b""}
WHOLE = pack(CONTENT)
DIRECTORY = WHOLE.index(b"PK\x01\x02")
FIRST = len(b"a/data.pkl")
LONG = pack({"a" * 60: b""})


def read(data: bytes) -> dict[str, ZipEntry]:
    with mmap.mmap(-1, len(data)) as memory:
        memory[:] = data
        return read_zip_entries(memory)


def patch(position: int, form: str, *values: int, data: bytes = WHOLE) -> bytes:
    new = struct.pack(f"<{form}", *values)
    return data[:position] + new + data[position + len(new) :]


def torch_archive() -> bytes:
    stream = io.BytesIO()
    torch.save({"a": torch.arange(3), "b": torch.zeros(2, 2)}, stream)
    return stream.getvalue()


@pytest.mark.parametrize("data", [WHOLE, torch_archive()], ids=["python", "torch"])
def test_entries_are_those_that_python_reads(data):
    entries = read(data)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert entries.keys() == set(file.namelist())
        for name, entry in entries.items():
            assert data[entry.start : entry.start + entry.num_bytes] == file.read(name)
            assert entry.crc32 == file.getinfo(name).CRC


def with_zip64(start: int, *, central_extra: bytes | None = None) -> bytes:
    """One entry whose numbers stand in the zip64 field of the directory."""
    name, content = b"a/data.pkl", b"pickle"
    local = LOCAL.pack(b"PK\x03\x04", 45, 0, 0, 0, 0, 0, 6, 6, len(name), 0) + name + content
    extra = struct.pack("<2H3Q", 1, 24, len(content), len(content), start)
    extra = b"\x99\x99\x01\x00x" + extra if central_extra is None else central_extra
    most = 0xFFFFFFFF
    numbers = (45, 45, 0, 0, 0, 0, 0, most, most, len(name), len(extra), 0, 0, 0, 0, most)
    central = CENTRAL.pack(b"PK\x01\x02", *numbers) + name + extra
    end = END.pack(b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def test_numbers_of_large_archives_are_read_from_the_wide_field():
    assert read(with_zip64(0)) == {"a/data.pkl": ZipEntry(LOCAL.size + FIRST, 6, 0)}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04", "has no end of a zip archive where it ends"),
        (WHOLE[:-1], "has no end of a zip archive where it ends"),
        (WHOLE + b"\0", "has no end of a zip archive where it ends"),
        (patch(len(WHOLE) - 18, "H", 1), "a part of a zip archive"),
        (patch(len(WHOLE) - 14, "H", 2), "a part of a zip archive"),
        (patch(len(WHOLE) - 2, "H", 2), "bears a comment"),
        (patch(len(WHOLE) - 10, "L", 1 << 31), "2,147,483,648 bytes from byte"),
        (patch(len(WHOLE) - 6, "L", 0), "from byte 0 to"),
        (patch(len(WHOLE) - 14, "2H", 999, 999), "a directory of 999 entries in"),
        (patch(len(WHOLE) - 14, "2H", 2, 2), "lists 2 entries, and more bytes than they need"),
        (patch(len(LONG) - 14, "2H", 2, 2, data=LONG), "ends in the middle of an entry"),
        (patch(DIRECTORY, "H", 0), f"no longer one at byte {DIRECTORY:,}"),
        (patch(DIRECTORY + 28, "H", 60_000), f"no longer one at byte {DIRECTORY:,}"),
        (patch(DIRECTORY + 34, "H", 1), f"no longer one at byte {DIRECTORY:,}"),
        (
            patch(DIRECTORY + CENTRAL.size, "B", 0xFF),
            "an entry whose name isn't UTF-8: b'\\xff/data.pkl'",
        ),
        (patch(DIRECTORY + 8, "H", 1), "an encrypted entry, 'a/data.pkl'"),
        (patch(DIRECTORY + 42, "L", 1 << 31), "an entry outside of itself, 'a/data.pkl'"),
        (patch(DIRECTORY + 42, "L", 1), "isn't where it should be, 'a/data.pkl'"),
        (patch(LOCAL.size, "B", 0x62), "isn't where it should be, 'a/data.pkl'"),
        (patch(6, "H", 1), "isn't where it should be, 'a/data.pkl'"),
        (patch(8, "H", 8), "isn't where it should be, 'a/data.pkl'"),
        (patch(DIRECTORY + 20, "2L", 999, 999), "reaches past its end, 'a/data.pkl'"),
        (patch(DIRECTORY + 20, "2L", 0xFFFFFFFF, 0xFFFFFFFF), "lacks the zip64 numbers"),
        (with_zip64(0, central_extra=b"\x01\x00\x08\x00" + bytes(8)), "lacks the zip64 numbers"),
        (with_zip64(1 << 60), "an entry outside of itself"),
    ],
)
def test_what_is_no_whole_archive_is_refused(data, message):
    with pytest.raises(DamagedFileError, match=re.escape(message)):
        read(data)


TORCH = torch_archive()
END64 = len(TORCH) - 98


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (patch(END64, "L", 0, data=TORCH), "a zip64 record that doesn't fit"),
        (patch(END64 + 4, "Q", 1 << 40, data=TORCH), "a zip64 record that doesn't fit"),
        (patch(END64 + 24, "Q", 1 << 40, data=TORCH), "a zip64 record that doesn't fit"),
        (patch(END64 + 56 + 8, "Q", 7, data=TORCH), "a zip64 record that doesn't fit"),
        (patch(END64 + 56 + 4, "L", 1, data=TORCH), "a zip64 record that doesn't fit"),
        (patch(END64 + 48, "Q", 1 << 62, data=TORCH), "tells its size twice, and differently"),
        (patch(len(TORCH) - 10, "L", 5, data=TORCH), "tells its size twice, and differently"),
        (
            patch(
                END64 + 48, "Q", 1 << 62, data=patch(len(TORCH) - 6, "L", 0xFFFFFFFF, data=TORCH)
            ),
            "from byte 4,611,686,018,427,387,904 to",
        ),
    ],
)
def test_lies_in_the_wide_record_are_found(data, message):
    with pytest.raises(DamagedFileError, match=re.escape(message)):
        read(data)


def test_a_large_archive_leaves_its_numbers_to_the_wide_record():
    data = patch(len(TORCH) - 14, "2H2L", 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, data=TORCH)
    assert read(data) == read(TORCH)


def twice(name: str) -> bytes:
    data = pack({name: b"1", name.replace("a", "b"): b"2"})
    return data.replace(name.replace("a", "b").encode(), name.encode())


def same_place(data: bytes) -> bytes:
    """The second entry lies where the first does, under its own name."""
    second = data.index(b"PK\x03\x04", 4)
    directory = data.index(b"PK\x01\x02")
    first_size = struct.unpack_from("<L", data, directory + 24)[0]
    grown = first_size + len(data[second:directory])
    return patch(directory + 20, "2L", grown, grown, data=data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pack(CONTENT, zipfile.ZIP_DEFLATED), "a compressed entry, 'a/data.pkl'"),
        (patch(DIRECTORY + 24, "L", 1 << 30), "a compressed entry, 'a/data.pkl'"),
        (twice("a/x"), "two entries with the name 'a/x'"),
        (same_place(pack({"a/x": b"1", "a/y": b"2"})), "overlap: 'a/x' and 'a/y'"),
    ],
)
def test_what_torch_never_writes_is_refused(data, message):
    with pytest.raises(UnsafeFileError, match=re.escape(message)):
        read(data)


def test_an_archive_of_too_many_entries_is_refused(monkeypatch):
    monkeypatch.setattr(zip_archive, "MAX_ENTRIES", 3)
    assert len(read(WHOLE)) == 3
    monkeypatch.setattr(zip_archive, "MAX_ENTRIES", 2)
    with pytest.raises(UnsafeFileError, match="has 3 entries listed in"):
        read(WHOLE)


def test_a_directory_of_too_many_bytes_is_refused(monkeypatch):
    monkeypatch.setattr(zip_archive, "MAX_DIRECTORY_BYTES", len(WHOLE) - DIRECTORY - END.size - 1)
    with pytest.raises(UnsafeFileError, match="no weights need more than 10,000 in"):
        read(WHOLE)


def test_the_checks_stand_before_the_reading(tmp_path: Path):
    """A directory of 10,001 entries is refused by its numbers, before one of them is read."""
    end = END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    directory = bytes(CENTRAL.size * 10_001)
    records = struct.pack(
        "<4sQ2H2L4Q", b"PK\x06\x06", 44, 0, 0, 0, 0, *[10_001] * 2, len(directory), 0
    )
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1)
    with pytest.raises(UnsafeFileError, match="has 10,001 entries listed in 460,046 bytes"):
        read(directory + records + locator + end)
