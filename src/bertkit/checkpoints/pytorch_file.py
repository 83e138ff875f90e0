"""Reader for `pytorch_model.bin`, a state dict written by `torch.save`; nothing is unpickled.

The pickle of a state dict always has the same form. `pickletools` splits it into operations, one
letter stands for each, and a regular expression states the form: a file that matches names tensors
and nothing else, and a file that doesn't is refused. Tensors are views of the mapped file.
Source: the operations in Python's `Lib/pickletools.py`, the zip archive and the older stream of
pickles and storages in PyTorch's `torch/serialization.py`.
"""

import io
import math
import pickletools
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import LazyTensor, MappedFile, release_pages
from bertkit.checkpoints.safetensors_file import MAX_DIMENSIONS, MAX_TENSORS

MAX_PICKLE_BYTES = 8 << 20  # BERT-Large's 400 tensors take 60 kB
MAX_OPERATIONS = 250_000  # BERT-Large needs 20,000; 250,000 take at most a second
MAX_INTEGER_BITS = 128  # torch's magic number has 80
MAX_EMPTY_ELEMENTS = 1 << 40  # limit for empty tensors, counting sizes of 0 as 1
MAX_ENTRIES = 10_000  # BERT-Large has 400 tensors
MAX_DIRECTORY_BYTES = 4 << 20
STREAM_MAGIC, STREAM_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
COUNT_BYTES = 8
ZIP_MAGIC = b"PK\x03\x04"
LOCAL_HEADER = struct.Struct("<4s22x2H")  # the lengths of name and extra field come last

DTYPES = {
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.DoubleStorage": torch.float64,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}
GLOBALS = dict.fromkeys(DTYPES, "C") | {
    "collections.OrderedDict": "O",
    "torch._utils._rebuild_tensor": "V",
    "torch._utils._rebuild_tensor_v2": "W",
    "torch._utils._rebuild_parameter": "P",
}
# Letters of the operations that a state dict may have, by their codes: their own, or one for all
# that make a string, an integer or a Boolean; none for those that name, recall and remember.
LETTERS = {
    **{code: code for code in "()].}NQRabestu"},
    **dict.fromkeys("TUX\x8c", "S"),
    **dict.fromkeys("JKM\x8a", "I"),
    **dict(zip("\x85\x86\x87\x88\x89G", "123BBF", strict=True)),
    **dict.fromkeys("chjqr\x93\x94\x95", ""),
}
OPERATIONS = {info.code: info for info in pickletools.opcodes if info.code in LETTERS}

# The form of the pickle in these letters; `T` recalls a tensor that has another name too.
SIZES = r"(?:\(I*+t|III3|II2|I1|\))"
EMPTY = r"(?:\}|O(?:\)|\]1|\(\]t)R)"  # a dict, or an OrderedDict as Python 3 and 2 write it
STORAGE = r"\(SCSSIN?tQ"
TENSOR = rf"(?:V\({STORAGE}I{SIZES}{SIZES}t|W\({STORAGE}I{SIZES}{SIZES}B{EMPTY}t)R"
VALUE = rf"(?:T|{TENSOR}|P{TENSOR}B{EMPTY}3R|P\({TENSOR}B{EMPTY}tR)"
PAIRS = rf"O\(?\](?:\((?:\]\(S{VALUE}e)*+e|\]\(S{VALUE}ea)*+[1t]R"  # an OrderedDict of Python 2
ITEMS = rf"(?:\((?:S{VALUE})*+u|S{VALUE}s)*+"  # set one by one, or in groups
VERSIONS = r"(?:\}[^VWPTb]*+b)?"  # of the parts of a module, which aren't looked at
STATE_DICT = re.compile(rf"(?:{EMPTY}{ITEMS}{VERSIONS}|{PAIRS})\.")
BEGINNING = re.compile(rf"^(?:{EMPTY}|O\(?|[](use]|S{VALUE})*+")
ENTRY = re.compile(rf"S(?=(?:P\(?)?[VW]\(({STORAGE})I({SIZES})({SIZES}))?{VALUE}")
NESTED = re.compile(rf"S(?={EMPTY}\(?S{TENSOR})")
KEYS = re.compile(r"\](?:\(S*+e|Sa)*+\.")


class _Storage(NamedTuple):
    """A run of elements in the file, which tensors are views of."""

    key: str
    dtype: torch.dtype
    num_elements: int

    @property
    def num_bytes(self) -> int:
        return self.num_elements * self.dtype.itemsize


class _View(NamedTuple):
    """A tensor: offset and stride count elements of its storage."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        return math.prod(self.size)

    @property
    def num_spanned(self) -> int:
        """Number of elements of the storage from the tensor's first to its last."""
        steps = ((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))
        return 1 + sum(steps) if self.num_elements else 0


_Content = tuple[dict[str, _View], dict[str, int]]  # and where each storage begins


def open_pytorch(path: Path) -> dict[str, LazyTensor]:
    """Read the header of an untrusted file; tensors are read on demand, by their names in the file.

    The pickle of an archive is verified against its CRC-32, but the tensors are not: that would add
    half of the reading time again, and the older form has no checksums at all.
    """
    file = MappedFile.open(path)
    try:
        if file.memory[:4] == ZIP_MAGIC:
            views, starts = _read_archive(file)
        elif file.memory[:1] == b"\x80":
            views, starts = _read_stream(file)
        elif file.memory[257:262] == b"ustar":
            raise CheckpointError(
                "is in the tar form of torch before 0.1.10; load and save it with torch if you"
                " trust it"
            )
        elif file.memory[8:10] == b'{"':
            raise DamagedFileError("is a safetensors file; name it model.safetensors")
        else:
            raise DamagedFileError(f"isn't what torch.save writes: {file.describe_start()}")
    except (CheckpointError, DamagedFileError, UnsafeFileError) as error:
        raise type(error)(f"{path} {error}") from None
    return {name: _lazy(file, view, starts[view.storage.key]) for name, view in views.items()}


def _lazy(file: MappedFile, view: _View, storage_start: int) -> LazyTensor:
    itemsize = view.storage.dtype.itemsize
    start, num_bytes = storage_start + view.offset * itemsize, view.num_spanned * itemsize
    release = partial(release_pages, file.memory, start, num_bytes)
    return LazyTensor(view.size, view.storage.dtype, partial(_read, file, view, start), release)


def _read(file: MappedFile, view: _View, start: int) -> Tensor:
    """Return a tensor: a view of the mapped file if alignment and strides allow it."""
    dtype = view.storage.dtype
    if not view.num_elements:
        return torch.empty(view.size, dtype=dtype)
    count = view.num_spanned * dtype.itemsize
    spanned = torch.frombuffer(file.memory, dtype=torch.uint8, count=count, offset=start)
    if dtype is torch.bool:
        spanned = spanned.ne(0)  # normalize bytes other than 0 and 1
    elif start % dtype.itemsize:
        spanned = spanned.clone()  # the older form doesn't align storages
    return spanned.view(dtype).as_strided(view.size, view.stride).contiguous()


Token = tuple[str, Any]  # a letter, and the string, number or name that it carries


def _split(stream: io.BytesIO) -> list[Token]:
    """Split the pickle at the stream's position, with what it recalls in the place of recalling."""
    if stream.read(2) not in (b"\x80\x02", b"\x80\x03", b"\x80\x04"):
        raise DamagedFileError(f"has no pickle of protocol 2 to 4 before byte {stream.tell():,}")
    tokens: list[Token] = []
    memo: dict[int, Token] = {}
    for info, value in _read_operations(stream):
        if info.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if value is None else value] = _recall(tokens)
        elif info.name in ("BINGET", "LONG_BINGET"):
            if value not in memo:
                raise DamagedFileError(f"has a pickle that recalls value {value:,} before it is")
            tokens.append(memo[value])
        elif info.name == "GLOBAL":
            tokens.append(_look_up(value.replace(" ", ".", 1)))
        elif info.name == "STACK_GLOBAL":
            if [letter for letter, _ in tokens[-2:]] != ["S", "S"]:
                raise DamagedFileError("has a pickle with a name that isn't made of strings")
            (_, last), (_, module) = tokens.pop(), tokens.pop()
            tokens.append(_look_up(f"{module}.{last}"))
        elif info.name != "FRAME":
            tokens.append((LETTERS[info.code], info.name == "NEWTRUE" if value is None else value))
    return tokens


def _read_operations(stream: io.BytesIO) -> Iterator[tuple[pickletools.OpcodeInfo, Any]]:
    """Yield each operation and its argument, to the end of a pickle."""
    for _ in range(MAX_OPERATIONS):
        code = stream.read(1)
        info = OPERATIONS.get(code.decode("latin-1"))
        if code and not info:
            raise UnsafeFileError(
                f"has the pickle operation {code!r} at byte {stream.tell() - 1:,}, which no"
                " weights need; it is damaged, or asks to run code"
            )
        try:
            value = info.arg.reader(stream) if info and info.arg else None
            if isinstance(value, str):
                value.encode()  # half of a surrogate pair is no text
        except ValueError:  # of `pickletools` too: few bytes, or a string that is none
            info = None
        if info is None:
            raise DamagedFileError(
                f"has a pickle that was cut short or altered at byte {stream.tell():,};"
                " fetch it again"
            )
        if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
            raise UnsafeFileError(f"has an integer of over {MAX_INTEGER_BITS} bits")
        yield info, value
        if info.name == "STOP":
            return
    raise UnsafeFileError(
        f"has a pickle of over {MAX_OPERATIONS:,} operations; no weights need as many"
    )


def _recall(tokens: list[Token]) -> Token:
    """Return what stands for the last value where it is recalled; `?` marks an illegal value."""
    letter, value = tokens[-1] if tokens else ("?", None)
    if letter == "R":  # what a call made, a tensor
        return "T", len(tokens) - 1
    return (letter, value) if letter in "SCOVWPT" else ("?", None)


def _look_up(dotted: str) -> Token:
    if dotted not in GLOBALS:
        raise UnsafeFileError(
            f"asks to call {ascii(dotted[:256])[1:-1]}, which no weights need; it was not called."
            " Don't open the file with another program unless you trust who made it"
        )
    return GLOBALS[dotted], dotted


def _read_state_dict(tokens: list[Token]) -> dict[str, _View]:
    """Return the tensors of a pickle that has the form of a state dict."""
    letters = "".join(letter for letter, _ in tokens)
    values = [value for _, value in tokens]
    if not STATE_DICT.fullmatch(letters):
        raise CheckpointError(_describe_other(letters, values))
    views: dict[str, _View] = {}
    made: dict[int, _View] = {}  # by the place of the call
    for match in ENTRY.finditer(letters):
        name, last = values[match.start()], match.end() - 1
        if match[1]:
            made[last] = _read_view(match, letters, values)
        view = made.get(last if match[1] else values[last])
        if view is None:  # another object that a call made
            raise CheckpointError(f"holds something other than tensors under {name[:80]!a}")
        if name in views:
            raise DamagedFileError(f"has the key {name[:80]!a} twice")
        _check_place(name, view)
        views[name] = view
    _check_sum(views)
    return views


def _read_view(match: re.Match[str], letters: str, values: list[Any]) -> _View:
    kind, storage_class, key, _, num_elements = values[match.start(1) + 1 : match.start(1) + 6]
    if kind != "storage" or num_elements < 0:
        raise UnsafeFileError(
            f"asks for {num_elements:,} elements of {storage_class} as {kind[:80]!a};"
            " expected a storage of numbers"
        )
    size, stride = (
        tuple(values[index] for index in range(*match.span(group)) if letters[index] == "I")
        for group in (2, 3)
    )
    if len(size) != len(stride) or len(size) > MAX_DIMENSIONS:
        raise UnsafeFileError(
            f"has a tensor with {len(size)} sizes and {len(stride)} strides; expected as many of"
            f" both, and at most {MAX_DIMENSIONS}"
        )
    storage = _Storage(key, DTYPES[storage_class], num_elements)
    return _View(storage, values[match.end(1)], size, stride)


def _describe_other(letters: str, values: list[Any]) -> str:
    """Describe a pickle that isn't that of a state dict, and how to get the weights out of it."""
    advice = (
        "expected a dict of tensors, as torch.save(model.state_dict(), …) writes. If it is a"
        " training checkpoint, keep a copy and save its weights alone:"
        " torch.save(torch.load(path, map_location='cpu', weights_only=True)[{key}], path)"
    )
    if nested := NESTED.search(letters):
        key = f"{values[nested.start()][:80]!a}"
        return f"holds a dict of tensors under {key}; {advice.format(key=key)}"
    rest = BEGINNING.sub("", letters, count=1)
    where = f" under {values[-len(rest)][:80]!a}" if rest.startswith("S") else ""
    return f"holds something other than tensors{where}; {advice.format(key=repr('state_dict'))}"


def _check_place(name: str, view: _View) -> None:
    """Check one tensor's offset, sizes and strides against its storage."""
    shown = ascii(name[:80])
    if min((view.offset, *view.size, *view.stride)) < 0:
        raise UnsafeFileError(f"has a negative offset, size or stride for {shown}")
    room = view.storage.num_elements
    if view.num_elements > room or view.offset + view.num_spanned > room:
        raise UnsafeFileError(
            f"wants {view.num_elements:,} elements for {shown} that reach to number"
            f" {view.offset + view.num_spanned:,} of a storage of {room:,}"
        )
    if math.prod(max(length, 1) for length in view.size) > max(room, MAX_EMPTY_ELEMENTS):
        raise UnsafeFileError(f"has an empty tensor with sizes beyond use, {shown}")


def _check_sum(views: dict[str, _View]) -> None:
    """Check the number of tensors, and that views don't add up to more than their storages."""
    if len(views) > MAX_TENSORS:
        raise UnsafeFileError(f"has {len(views):,} tensors; no model needs over {MAX_TENSORS:,}")
    distinct = set(views.values())
    wanted = sum(view.num_elements * view.storage.dtype.itemsize for view in distinct)
    there = sum(storage.num_bytes for storage in {view.storage for view in distinct})
    if wanted > there:
        raise UnsafeFileError(
            f"has tensors of {wanted:,} bytes that view the same {there:,} bytes; expected at most"
            " as many"
        )


def _find_storages(views: dict[str, _View]) -> dict[str, _Storage]:
    storages: dict[str, _Storage] = {}
    for view in views.values():
        if storages.setdefault(view.storage.key, view.storage) != view.storage:
            raise DamagedFileError(
                f"names the storage {view.storage.key[:80]!a} twice, and differently"
            )
    return storages


def _read_archive(file: MappedFile) -> _Content:
    """Return the tensors of a zip archive, and where each storage begins in the file."""
    members = _read_directory(file)
    if any(name == "constants.pkl" or name.startswith("code/") for name in members):
        raise UnsafeFileError(
            "is a TorchScript program, not weights; save the model's state_dict() instead"
        )
    order = _take(file, members, "byteorder", 16) if "byteorder" in members else b"little"
    if order != b"little":
        raise CheckpointError(f"has numbers in byte order {order!r}; expected little-endian")
    pickle = _take(file, members, "data.pkl", MAX_PICKLE_BYTES)
    views = _read_state_dict(_split(io.BytesIO(pickle)))
    starts = {}
    for key, storage in _find_storages(views).items():
        name = f"data/{key}"
        start, info = members.get(name, (0, None))
        if info is None or info.file_size != storage.num_bytes:
            found = f"has {info.file_size:,}" if info else "isn't there"
            raise DamagedFileError(
                f"should have {storage.num_bytes:,} bytes in {name[:80]!a}, which {found}"
            )
        starts[key] = start
    return views, starts


class _ShortReads(io.FileIO):
    """A file of which little is read at once: `zipfile` believes what a directory says it has."""

    def read(self, num_bytes: int | None = -1, /) -> bytes:
        if num_bytes is not None and num_bytes > MAX_DIRECTORY_BYTES:
            raise UnsafeFileError(
                f"has a zip directory of {num_bytes:,} bytes; no weights need over"
                f" {MAX_DIRECTORY_BYTES:,}"
            )
        return super().read(num_bytes)


Members = dict[str, tuple[int, zipfile.ZipInfo]]  # where the content begins, and its entry


def _read_directory(file: MappedFile) -> Members:
    """Return the members of an archive by their names in its folder."""
    try:
        with (
            _ShortReads(file.path) as stream,
            zipfile.ZipFile(stream, metadata_encoding="utf-8") as archive,
        ):
            infos = archive.infolist()
    except UnsafeFileError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise DamagedFileError(
            f"isn't a whole zip archive ({str(error)[:80]!a}); it was cut short or altered: fetch"
            " it again"
        ) from None
    names = [info.filename for info in infos]
    if len(set(names)) < len(infos) or len(infos) > MAX_ENTRIES:
        raise UnsafeFileError(
            f"has {len(infos):,} entries, or two of one name; expected at most {MAX_ENTRIES:,}"
        )
    if sum(info.file_size for info in infos) > file.size_bytes:
        raise UnsafeFileError("has entries that are compressed or overlap; torch writes neither")
    folders = [name.removesuffix("/data.pkl") for name in names if name.endswith("/data.pkl")]
    if len(folders) != 1 or "/" in folders[0]:
        raise DamagedFileError("is a zip archive without one data.pkl; torch.save didn't write it")
    inside = f"{folders[0]}/"
    return {
        info.filename.removeprefix(inside): (_find(file, info), info)
        for info in infos
        if info.filename.startswith(inside)
    }


def _find(file: MappedFile, info: zipfile.ZipInfo) -> int:
    """Return where an entry's content begins."""
    shown = ascii(info.filename[:80])
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise UnsafeFileError(
            f"has a compressed or encrypted entry, {shown}, which may unpack to any size; torch"
            " writes none, so load and save it with torch if you trust it"
        )
    header = info.header_offset
    content = header + LOCAL_HEADER.size
    if 0 <= header <= file.size_bytes - LOCAL_HEADER.size:
        magic, num_name_bytes, num_extra_bytes = LOCAL_HEADER.unpack_from(file.memory, header)
        content += int(num_name_bytes + num_extra_bytes)
        if magic == ZIP_MAGIC and content + info.file_size <= file.size_bytes:
            return content
    raise DamagedFileError(f"has an entry that isn't where it should be, {shown}; fetch it again")


def _take(file: MappedFile, members: Members, name: str, limit_bytes: int) -> bytes:
    """Return the content of a member that isn't a tensor, after verifying its CRC-32."""
    start, info = members[name]
    if info.file_size > limit_bytes:
        raise UnsafeFileError(
            f"has {info.file_size:,} bytes of {name}; no weights need over {limit_bytes:,}"
        )
    data = file.read(start, info.file_size)
    if info.CRC and zlib.crc32(data) != info.CRC:
        raise DamagedFileError(f"was altered in {name} (its CRC-32 differs); fetch it again")
    return data


def _read_stream(file: MappedFile) -> _Content:
    """Return the same of the older form: five pickles, and the storages, each behind its length."""
    stream = io.BytesIO(file.memory[:MAX_PICKLE_BYTES])
    if _split(stream)[0] != ("I", STREAM_MAGIC) or _split(stream)[0] != ("I", STREAM_PROTOCOL):
        raise DamagedFileError("is a pickle, but not of torch.save in its protocol 1001")
    if (("S", "little_endian"), ("B", True)) not in pairwise(_split(stream)):
        raise CheckpointError("wasn't written on a little-endian machine; expected such numbers")
    views = _read_state_dict(_split(stream))
    storages, listed = _find_storages(views), _split(stream)
    keys = [value for letter, value in listed if letter == "S"]
    is_list = KEYS.fullmatch("".join(letter for letter, _ in listed))
    if not is_list or sorted(keys) != sorted(storages):
        raise DamagedFileError(f"doesn't list the {len(storages):,} storages of its tensors")
    position, starts = stream.tell(), {}
    for key in keys:
        starts[key] = start = position + COUNT_BYTES
        count = int.from_bytes(file.read(position, COUNT_BYTES), "little", signed=True)
        position = start + storages[key].num_bytes
        if count != storages[key].num_elements or position > file.size_bytes:
            raise DamagedFileError(
                f"should have {storages[key].num_elements:,} elements of storage {key[:80]!a} from"
                f" byte {start:,}, and doesn't; it was cut short or altered: fetch it again"
            )
    if position != file.size_bytes:
        raise DamagedFileError(f"has {file.size_bytes - position:,} bytes behind its last storage")
    return views, starts
