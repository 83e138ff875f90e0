"""Pickles and the files of `torch.save`, put together by hand, so that they can say anything."""

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping, Sequence

STREAM_MAGIC = 0x1950A86A20F9469CFC6C
PROTO = b"\x80\x02"
STOP = b"."


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def old_text(value: str) -> bytes:
    """As Python 2 wrote strings."""
    return b"U" + bytes([len(value)]) + value.encode()


def integer(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def name(dotted: str) -> bytes:
    module, _, last = dotted.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def group(*values: bytes) -> bytes:
    """A tuple."""
    return b"(" + b"".join(values) + b"t"


def call(dotted: str, *arguments: bytes) -> bytes:
    return name(dotted) + group(*arguments) + b"R"


def storage(key: str = "0", kind: str = "torch.FloatStorage", num_elements: int = 4) -> bytes:
    parts = (text("storage"), name(kind), text(key), text("cpu"), integer(num_elements))
    return group(*parts) + b"Q"


def tensor(
    place: bytes | None = None,
    *,
    offset: int = 0,
    size: Sequence[int] = (4,),
    stride: Sequence[int] = (1,),
) -> bytes:
    return call(
        "torch._utils._rebuild_tensor_v2",
        storage() if place is None else place,
        integer(offset),
        group(*map(integer, size)),
        group(*map(integer, stride)),
        b"\x89",
        b"}",
    )


def mapping(*items: tuple[bytes, bytes]) -> bytes:
    return b"}(" + b"".join(key + value for key, value in items) + b"u"


def state(tensors: Mapping[str, bytes]) -> bytes:
    """The pickle of a flat dict."""
    return PROTO + mapping(*((text(key), value) for key, value in tensors.items())) + STOP


def archive(
    content: bytes,
    storages: Mapping[str, bytes] | None = None,
    *,
    compression: int = zipfile.ZIP_STORED,
    **members: bytes,
) -> bytes:
    """The zip archive of a pickle and storages; `members` are set, or added, at its top.

    Without storages there is one, of four floats.
    """
    entries = {"data.pkl": content, "byteorder": b"little", "version": b"3\n"}
    for key, data in ({"0": bytes(16)} if storages is None else storages).items():
        entries[f"data/{key}"] = data
    return pack({f"model/{key}": data for key, data in (entries | members).items()}, compression)


def pack(entries: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for path, data in entries.items():
            file.writestr(zipfile.ZipInfo(path), data, compression)
    return stream.getvalue()


def stream(
    content: bytes,
    storages: Sequence[tuple[str, int, bytes]] = (("0", 4, bytes(16)),),
    *,
    magic: object = STREAM_MAGIC,
    protocol: object = 1001,
    system: object = None,
    keys: object = None,
) -> bytes:
    """The older form: key, number of elements and bytes of each storage behind the pickles."""
    if system is None:
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    head = b"".join(pickle.dumps(value, 2) for value in (magic, protocol, system))
    listed = pickle.dumps([key for key, _, _ in storages] if keys is None else keys, 2)
    tail = b"".join(struct.pack("<q", count) + data for _, count, data in storages)
    return head + content + listed + tail
