"""Recognize a file by its first bytes, where its name says something else."""

from bertkit.data.encodings import CONTROLS, is_foreign

SIGNATURES = {
    b"\x1f\x8b": ("gzip", "give it a name that ends with .gz"),
    b"BZh": ("bzip2", "give it a name that ends with .bz2"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "give it a name that ends with .zst"),
    b"PAR1": ("Parquet", "name its format with --format parquet"),
    b"PK\x03\x04": ("a workbook or another ZIP archive", "save it as CSV, or unpack it first"),
    b"\xd0\xcf\x11\xe0": ("a .xls or .doc file", "save it as CSV or text first"),
    b"\xfd7zXZ": ("xz", "unpack it first"),
    b"ARROW1": ("Arrow", "save it as Parquet first"),
    b"SQLite format 3": ("an SQLite database", "export it as CSV first"),
    b"%PDF-": ("PDF", "make text of it first"),
}
SKIPPABLE_FRAMES = tuple(bytes((0x50 + number, 0x2A, 0x4D, 0x18)) for number in range(16))
COMPRESSED = {
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".zst": (b"\x28\xb5\x2f\xfd", *SKIPPABLE_FRAMES),
}
NUM_BYTES = 16  # at the beginning of a file


def find_content(start: bytes) -> tuple[str, str] | None:
    """Return what a file is that isn't text, and what to do with it; None if that isn't known.

    A text may begin with letters of a signature, so bytes that text lacks are needed too.
    """
    head = start[:NUM_BYTES]
    if head.isascii() and head == head.translate(None, CONTROLS) and not is_foreign(start):
        return None
    return next((found for mark, found in SIGNATURES.items() if head.startswith(mark)), None)


def find_other_content(start: bytes, suffix: str) -> str | None:
    """Return what a file with the name of a compressed one is; None if it is one, or empty."""
    if not start or start.startswith(COMPRESSED[suffix]):
        return None
    if found := find_content(start):
        return found[0]
    return "something else" if is_foreign(start) else "text"
