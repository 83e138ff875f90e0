"""The Protocol Buffers wire format: numbered fields, without the schema that names them.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.checkpoints.tensorflow.byte_reader import ByteReader

MAX_FIELDS = 100  # a tensor's entry has 6, plus 1 for each dimension

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # 3 and 4 delimit groups, which are deprecated


@dataclass(frozen=True)
class Message:
    """The fields of one message; nested messages are parsed on demand.

    Attributes:
        source: its name in error messages.
        fields: values by field number, in file order.
    """

    source: str
    fields: Mapping[int, Sequence[int | bytes]]

    @classmethod
    def parse(cls, data: bytes, source: str) -> "Message":
        """Split bytes into fields."""
        reader = ByteReader(data, source)
        fields: defaultdict[int, list[int | bytes]] = defaultdict(list)
        num_fields = 0
        while reader.num_left:
            num_fields += 1
            if num_fields > MAX_FIELDS:
                raise UnsafeFileError(f"{source} has more than {MAX_FIELDS:,} fields")
            tag = reader.take_varint()
            fields[tag >> 3].append(_take_value(reader, tag & 7, source))
        return cls(source, fields)

    def integer(self, number: int) -> int:
        """Return the field's last value as a signed 64-bit number, or 0 if it is absent."""
        value = self.fields.get(number, [0])[-1]
        if isinstance(value, bytes):
            raise DamagedFileError(f"{self.source} is damaged: field {number} isn't a number")
        return value - (1 << 64) if value >> 63 else value

    def messages(self, number: int) -> list["Message"]:
        """Return the messages in a repeated field; empty if it is absent."""
        parsed = []
        for value in self.fields.get(number, []):
            if not isinstance(value, bytes):
                raise DamagedFileError(f"{self.source} is damaged: field {number} isn't a message")
            parsed.append(Message.parse(value, self.source))
        return parsed


def _take_value(reader: ByteReader, wire_type: int, source: str) -> int | bytes:
    if wire_type == VARINT:
        return reader.take_varint()
    if wire_type == BYTES:
        return reader.take(reader.take_varint())
    if wire_type in (FIXED_32, FIXED_64):
        return reader.take_fixed(4 if wire_type == FIXED_32 else 8)
    raise DamagedFileError(f"{source} is damaged: a field has the unknown wire type {wire_type}")
