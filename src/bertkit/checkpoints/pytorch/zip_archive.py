"""Zip archives written by `torch.save`: finds the byte range of each entry.

Nothing is unpacked, since torch stores entries uncompressed; a reader only needs their location.
Python's `zipfile` isn't used, because it trusts the directory's stated size and number of entries
before they can be checked, and allows entries to overlap.
Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from mmap import mmap

from bertkit.base.errors import DamagedFileError, UnsafeFileError

LOCAL_MAGIC = b"PK\x03\x04"
CENTRAL_MAGIC = b"PK\x01\x02"
END_MAGIC = b"PK\x05\x06"
END64_MAGIC = b"PK\x06\x06"
LOCATOR64_MAGIC = b"PK\x06\x07"

LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
EXTRA = struct.Struct("<2H")
ZIP64_EXTRA = 1
IN_ZIP64 = (0xFFFF, 0xFFFFFFFF)  # the actual number is in a wider field

MAX_ENTRIES = 10_000  # BERT-Large has 400 tensors
MAX_DIRECTORY_BYTES = 4 << 20  # enough for 10,000 names of 350 characters

ENCRYPTED = 1
STORED = 0


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """The byte range of one entry.

    Attributes:
        start: of its content in the file.
        num_bytes: of its content.
        crc32: the stored checksum; 0 if torch was configured not to compute one.
    """

    start: int
    num_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry as the directory lists it."""

    name: bytes
    flags: int
    method: int
    crc32: int
    num_packed_bytes: int
    num_bytes: int
    header: int


def read_zip_entries(file: mmap) -> dict[str, ZipEntry]:
    """Locate the entries of a mapped, untrusted archive."""
    num_entries, start, end = _find_directory(file)
    entries: dict[str, ZipEntry] = {}
    extents = []
    position = start
    for _ in range(num_entries):
        listed, position = _read_listed(file, position, end)
        name = _decode(listed.name)
        if name in entries:
            raise UnsafeFileError(f"has two entries with the name {name[:80]!r}")
        entries[name] = _locate(file, listed, name, start)
        extents.append((listed.header, entries[name].start + listed.num_bytes, name))
    if position != end:
        raise DamagedFileError(f"lists {num_entries} entries, and more bytes than they need")
    extents.sort()
    for (_, first_end, first), (second_start, _, second) in pairwise(extents):
        if second_start < first_end:
            raise UnsafeFileError(f"has entries that overlap: {first[:80]!r} and {second[:80]!r}")
    return entries


def _find_directory(file: mmap) -> tuple[int, int, int]:
    """Return the number of entries, and where the directory begins and ends."""
    records = len(file) - END.size
    if records < 0 or file[records : records + 4] != END_MAGIC:
        raise DamagedFileError(
            "has no end of a zip archive where it ends: it was cut short, or something was written"
            " behind it; fetch it again"
        )
    _, disk, first_disk, num_here, num_entries, num_bytes, start, comment = END.unpack_from(
        file, records
    )
    if disk or first_disk or num_here != num_entries or comment:
        raise DamagedFileError("is a part of a zip archive, or bears a comment; expected neither")
    locator = records - LOCATOR64.size
    if locator >= END64.size and file[locator : locator + 4] == LOCATOR64_MAGIC:
        narrow = (num_entries, num_bytes, start)
        records = locator - END64.size
        num_entries, num_bytes, start = _read_end64(file, records, locator)
        wide = (num_entries, num_bytes, start)
        if any(a != b and a not in IN_ZIP64 for a, b in zip(narrow, wide, strict=True)):
            raise DamagedFileError("tells its size twice, and differently")
    if start + num_bytes != records or num_bytes < num_entries * CENTRAL.size:
        raise DamagedFileError(
            f"should have a directory of {num_entries:,} entries in {num_bytes:,} bytes from byte"
            f" {start:,} to {records:,}, which can't be"
        )
    if num_entries > MAX_ENTRIES or num_bytes > MAX_DIRECTORY_BYTES:
        raise UnsafeFileError(
            f"has {num_entries:,} entries listed in {num_bytes:,} bytes; no weights need more than"
            f" {MAX_ENTRIES:,} in {MAX_DIRECTORY_BYTES:,}"
        )
    return num_entries, start, records


def _read_end64(file: mmap, records: int, locator: int) -> tuple[int, int, int]:
    """Return the same three numbers from the zip64 record, which torch always writes."""
    _, disk, place, num_disks = LOCATOR64.unpack_from(file, locator)
    magic, size, _, _, *disks, num_here, num_entries, num_bytes, start = END64.unpack_from(
        file, records
    )
    is_whole = magic == END64_MAGIC and size == END64.size - 12 and place == records
    if not is_whole or disk or num_disks > 1 or any(disks) or num_here != num_entries:
        raise DamagedFileError("has a zip64 record that doesn't fit its place; fetch it again")
    return num_entries, num_bytes, start


def _read_listed(file: mmap, position: int, end: int) -> tuple[_Listed, int]:
    """Return one entry of the directory, and where the next begins."""
    if position + CENTRAL.size > end:
        raise DamagedFileError("has a directory that ends in the middle of an entry")
    magic, _, _, flags, method, _, _, crc32, *rest = CENTRAL.unpack_from(file, position)
    packed, unpacked, name_bytes, extra_bytes, comment_bytes, disk, _, _, header = rest
    name_end = position + CENTRAL.size + name_bytes
    extra_end = name_end + extra_bytes
    following = extra_end + comment_bytes
    if magic != CENTRAL_MAGIC or following > end or disk:
        raise DamagedFileError(f"has a directory that is no longer one at byte {position:,}")
    name = file[position + CENTRAL.size : name_end]
    unpacked, packed, header = _widen((unpacked, packed, header), file[name_end:extra_end])
    return _Listed(name, flags, method, crc32, packed, unpacked, header), following


def _widen(narrow: tuple[int, int, int], extra: bytes) -> list[int]:
    """Replace numbers that are stored in an entry's zip64 field, in field order."""
    position = 0
    wide = b""
    while position + EXTRA.size <= len(extra):
        kind, num_bytes = EXTRA.unpack_from(extra, position)
        position += EXTRA.size
        if kind == ZIP64_EXTRA:
            wide = extra[position : position + num_bytes]
        position += num_bytes
    numbers = []
    for number in narrow:
        if number == IN_ZIP64[1]:
            if len(wide) < 8:
                raise DamagedFileError("lacks the zip64 numbers of an entry")
            number, wide = int.from_bytes(wide[:8], "little"), wide[8:]
        numbers.append(number)
    return numbers


def _decode(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise DamagedFileError(f"has an entry whose name isn't UTF-8: {name[:80]!r}") from None


def _locate(file: mmap, listed: _Listed, name: str, directory: int) -> ZipEntry:
    """Check an entry against its local header, and locate its content."""
    shown = repr(name[:80])
    if listed.flags & ENCRYPTED:
        raise DamagedFileError(f"has an encrypted entry, {shown}; expected plain ones")
    if listed.method != STORED or listed.num_packed_bytes != listed.num_bytes:
        raise UnsafeFileError(
            f"has a compressed entry, {shown}, which may unpack to any size; torch compresses none,"
            " so load and save it with torch if you trust it"
        )
    start = listed.header + LOCAL.size
    if start > directory:
        raise DamagedFileError(f"has an entry outside of itself, {shown}")
    magic, _, flags, method, *_, name_bytes, extra_bytes = LOCAL.unpack_from(file, listed.header)
    its_name = file[start : start + name_bytes]
    if magic != LOCAL_MAGIC or its_name != listed.name or method != STORED or flags & ENCRYPTED:
        raise DamagedFileError(f"has an entry that isn't where it should be, {shown}")
    start += name_bytes + extra_bytes
    if start + listed.num_bytes > directory:
        raise DamagedFileError(f"has an entry that reaches past its end, {shown}")
    return ZipEntry(start, listed.num_bytes, listed.crc32)
