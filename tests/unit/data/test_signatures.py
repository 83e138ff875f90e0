"""Files whose names say something else than their content are named by what they are."""

import bz2
import gzip
import io
import zipfile

import pytest
import zstandard
from tests.unit.data.corpora import pack_parquet, read

from bertkit.base.errors import InputError
from bertkit.data.encodings import find_content
from bertkit.data.tables.records import open_records
from bertkit.data.tables.texts import open_texts

TABLE = b"text,label\na,x\nb,y\n"


def pack_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.csv", TABLE)
    return stream.getvalue()


PARQUET = pack_parquet(text=["a", "b"])
OTHERS = {
    "gzip; give it a name that ends with .gz": gzip.compress(TABLE),
    "bzip2; give it a name that ends with .bz2": bz2.compress(TABLE),
    "Zstandard; give it a name that ends with .zst": zstandard.compress(TABLE),
    "Parquet; name its format with --format parquet": PARQUET,
    "a workbook or another ZIP archive; save it as CSV, or unpack it first": pack_zip(),
}


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl"])
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_text_is_named(tmp_path, name, what):
    path = tmp_path / name
    path.write_bytes(OTHERS[what])
    for rows in (lambda: list(open_texts(path).rows()), lambda: open_records(path)):
        with pytest.raises(InputError) as caught:
            rows()
        assert str(caught.value) == f"{path} isn't text: it is {what}"
    if name == "a.txt":
        documents, report = read(path)
        assert documents == []
        assert report.places["not-text"][0].endswith(f"a.txt (it is {what})")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (TABLE, "text"),
        (PARQUET, "Parquet"),
        (bytes(range(200, 256)) * 9, "something else"),
    ],
)
def test_what_is_not_compressed_as_its_name_says_is_named(tmp_path, suffix, content, what):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"isn't compressed as \{suffix} says, but is {what};"):
        list(open_texts(path).rows())
    assert read(path)[1].counts == {"damaged": 1}
    path.write_bytes(b"")
    assert list(read(path)[0]) == []


@pytest.mark.parametrize("text", ["PAR1 is a par file.", "BZh is a word", "%PDF- is a mark", "PK"])
def test_a_text_may_begin_like_another_file(text):
    assert find_content(text.encode()) is None
