"""The Protocol Buffers wire format: numbered fields, without the schema that names them.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertkit.base.errors import DamagedFileError, UnsafeFileError

VARINT_LIMIT_BYTES = 10  # 64 bits, 7 in a byte
VARINT_LIMIT = 1 << 64
MAX_FIELDS = 100  # a tensor's entry has 6, plus 1 for each dimension

VARINT, BYTES = 0, 2  # 3 and 4 delimit groups, which are deprecated
FIXED_BYTES = {1: 8, 5: 4}


class ByteReader:
    """A position in bytes of an untrusted file, or in a view of them, with a name for messages."""

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


@dataclass(frozen=True)
class Message:
    """The fields of one message; nested messages are parsed on demand."""

    source: str  # its name in error messages
    fields: Mapping[int, Sequence[int | bytes | memoryview]]  # by number, in file order

    @classmethod
    def parse(
        cls, data: bytes | memoryview, source: str, max_fields: int = MAX_FIELDS
    ) -> "Message":
        """Split bytes into fields; those of a view aren't copied.

        Raises:
            DamagedFileError: the bytes aren't a message.
            UnsafeFileError: there are more than `max_fields` fields.
        """
        reader = ByteReader(data, source)
        fields: defaultdict[int, list[int | bytes | memoryview]] = defaultdict(list)
        num_fields = 0
        while reader.num_left:
            num_fields += 1
            if num_fields > max_fields:
                raise UnsafeFileError(f"{source} has more than {max_fields:,} fields")
            number, wire_type = divmod(reader.take_varint(), 8)
            if wire_type == VARINT:
                fields[number].append(reader.take_varint())
            elif wire_type == BYTES:
                fields[number].append(reader.take(reader.take_varint()))
            elif wire_type in FIXED_BYTES:
                content = reader.take(FIXED_BYTES[wire_type])
                fields[number].append(int.from_bytes(content, "little"))
            else:
                raise DamagedFileError(
                    f"{source} is damaged: a field has the unknown wire type {wire_type}"
                )
        return cls(source, fields)

    def integer(self, number: int) -> int:
        """Return the field's last value as a signed 64-bit number, or 0 if it is absent."""
        return (self.integers(number) or [0])[-1]

    def integers(self, number: int) -> list[int]:
        """Return all values of a repeated field as signed 64-bit numbers."""
        values = []
        for value in self.fields.get(number, []):
            if not isinstance(value, int):
                raise DamagedFileError(f"{self.source} is damaged: field {number} isn't a number")
            values.append(value - (1 << 64) if value >> 63 else value)
        return values

    def content(self, number: int) -> bytes | memoryview:
        """Return the field's last value as bytes, empty if it is absent."""
        value = self.fields.get(number, [b""])[-1]
        if isinstance(value, int):
            raise DamagedFileError(f"{self.source} is damaged: field {number} isn't a text")
        return value

    def messages(self, number: int, max_fields: int = MAX_FIELDS) -> list["Message"]:
        """Return the messages in a repeated field; empty if it is absent."""
        parsed = []
        for value in self.fields.get(number, []):
            if isinstance(value, int):
                raise DamagedFileError(f"{self.source} is damaged: field {number} isn't a message")
            parsed.append(Message.parse(value, self.source, max_fields))
        return parsed
