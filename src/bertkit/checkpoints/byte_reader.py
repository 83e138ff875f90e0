"""Sequential reading of bytes from an untrusted file, with bounds checks."""

from bertkit.base.errors import DamagedFileError

VARINT_LIMIT_BYTES = 10  # 64 bits, 7 in a byte
VARINT_LIMIT = 1 << 64


class ByteReader:
    """A position in bytes, or in a view of them, with a name for messages."""

    def __init__(self, data: bytes | memoryview, source: str) -> None:
        self._data = data
        self._source = source
        self.position = 0

    @property
    def num_left(self) -> int:
        """Number of remaining bytes."""
        return len(self._data) - self.position

    def take(self, num_bytes: int) -> bytes | memoryview:
        """Return the next bytes, or a view of them."""
        if num_bytes > self.num_left:
            raise DamagedFileError(
                f"{self._source} is damaged: {num_bytes:,} bytes are announced and"
                f" {self.num_left:,} are left; fetch it again"
            )
        start, self.position = self.position, self.position + num_bytes
        return self._data[start : self.position]

    def take_varint(self) -> int:
        """Return the next varint: 7 bits per byte, lowest first; at least 0 and below 2⁶⁴."""
        value = 0
        limit = self.position + VARINT_LIMIT_BYTES
        for index, byte in enumerate(self._data[self.position : limit]):
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80 and value < VARINT_LIMIT:
                self.position += index + 1
                return value
        raise DamagedFileError(
            f"{self._source} is damaged: a number at its byte {self.position:,} has no end within"
            f" {VARINT_LIMIT_BYTES} bytes and 64 bits; fetch it again"
        )

    def take_fixed(self, num_bytes: int) -> int:
        """Return the next little-endian number of a fixed width; errors as in `take`."""
        return int.from_bytes(self.take(num_bytes), "little")
