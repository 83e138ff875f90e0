"""Messages as the wire has them."""

import pytest
from tests.bundles import field, fixed32, varint

from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.checkpoints.protobuf_wire import MAX_FIELDS, ByteReader, Message

NUMBERS = [0, 1, 127, 128, 300, (1 << 32) - 1, (1 << 63), (1 << 64) - 1]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_read_and_what_follows_stays(number):
    reader = ByteReader(varint(number) + b"rest", "file")
    assert reader.take_varint() == number
    assert reader.take(reader.num_left) == b"rest"


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 10 + b"\x01", b"\x80" * 10 + b"\x00", b"\x80" * 9 + b"\x02"]
)
def test_a_number_is_at_most_10_bytes_and_64_bits(data):
    with pytest.raises(DamagedFileError, match="within 10 bytes and 64 bits"):
        ByteReader(data, "file").take_varint()


def test_bytes_beyond_the_end_are_refused_before_they_are_taken():
    reader = ByteReader(b"abc", "file")
    assert reader.take(2) == b"ab"
    with pytest.raises(DamagedFileError, match="1,099,511,627,776 bytes are announced and 1 are"):
        reader.take(1 << 40)


def test_fields_are_found_by_number_and_others_passed_over():
    inner = field(1, 7) + field(2, -1)
    fixed64 = varint(9 << 3 | 1) + (5).to_bytes(8, "little")
    data = field(3, 300) + field(4, inner) + fixed32(6, 1 << 31) + fixed64 + field(4, b"")
    message = Message.parse(data, "file")
    assert [message.integer(number) for number in (3, 6, 9, 1000)] == [300, 1 << 31, 5, 0]
    first, second = message.messages(4)
    assert (first.integer(1), first.integer(2), second.integer(1)) == (7, -1, 0)
    assert message.messages(1000) == []


def test_as_many_fields_as_allowed_are_read_and_no_more():
    assert Message.parse(field(1, 1) * MAX_FIELDS, "file").integer(1) == 1
    with pytest.raises(UnsafeFileError, match="file has more than 100 fields"):
        Message.parse(field(1, 1) * (MAX_FIELDS + 1), "file")
