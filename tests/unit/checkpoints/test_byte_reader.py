"""Numbers and bytes are taken only where they are."""

import pytest
from tests.bundles import varint

from bertkit.base.errors import DamagedFileError
from bertkit.checkpoints.byte_reader import ByteReader

NUMBERS = [0, 1, 127, 128, 300, (1 << 32) - 1, (1 << 63), (1 << 64) - 1]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_read_and_what_follows_stays(number: int) -> None:
    reader = ByteReader(varint(number) + b"rest", "file")
    assert reader.take_varint() == number
    assert reader.take(reader.num_left) == b"rest"


@pytest.mark.parametrize("number", NUMBERS[3:])
def test_a_number_cut_short_is_refused(number: int) -> None:
    with pytest.raises(DamagedFileError, match="file is damaged: a number at its byte 0 has no en"):
        ByteReader(varint(number)[:-1], "file").take_varint()


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 10 + b"\x01", b"\x80" * 10 + b"\x00", b"\x80" * 9 + b"\x02"]
)
def test_a_number_is_at_most_10_bytes_and_64_bits(data: bytes) -> None:
    with pytest.raises(DamagedFileError, match="within 10 bytes and 64 bits"):
        ByteReader(data, "file").take_varint()


def test_bytes_beyond_the_end_are_refused_before_they_are_taken() -> None:
    reader = ByteReader(b"abc", "file")
    assert reader.take(2) == b"ab"
    with pytest.raises(DamagedFileError, match="1,099,511,627,776 bytes are announced and 1 are"):
        reader.take(1 << 40)
    with pytest.raises(DamagedFileError, match="4 bytes are announced"):
        reader.take_fixed(4)


def test_numbers_of_fixed_width_begin_with_the_lowest_byte() -> None:
    assert ByteReader(b"\x01\x02\x00\x80", "file").take_fixed(4) == 0x80000201
