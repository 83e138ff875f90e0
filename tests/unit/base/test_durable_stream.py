"""What a library writes into a durable file arrives, and is counted in bytes."""

from array import array

from bertkit.base.durable_stream import DurableStream
from bertkit.base.files import durable_file


def test_all_bytes_arrive_whatever_they_are_handed_over_in(tmp_path):
    with durable_file(tmp_path / "file") as file:
        stream = DurableStream(file)
        assert stream.writable()
        assert stream.write(b"abc") == 3
        assert stream.write(memoryview(array("i", [1, 2]))) == 8
        stream.close()  # the file is its owner's to finish
    assert (tmp_path / "file").read_bytes() == b"abc" + array("i", [1, 2]).tobytes()


def test_closing_the_stream_finishes_nothing(tmp_path):
    with durable_file(tmp_path / "file") as file:
        with DurableStream(file) as stream:
            stream.write(b"abc")
        assert [path.name for path in tmp_path.iterdir()] == ["file.partial"]
    assert (tmp_path / "file").read_bytes() == b"abc"
