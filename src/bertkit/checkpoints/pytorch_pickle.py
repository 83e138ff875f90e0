"""The pickle of a state dict, read without unpickling.

It always has the same form. `pickletools` splits it into operations, one letter stands for each,
and a regular expression states the form: a pickle that matches names tensors and nothing else, and
one that doesn't is refused.

Source: the operations in Python's `Lib/pickletools.py`.
"""

import io
import math
import pickletools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import MAX_DIMENSIONS, MAX_EMPTY_ELEMENTS, MAX_TENSORS
from bertkit.checkpoints.elements import ElementType

MAX_OPERATIONS = 250_000  # BERT-Large needs 20,000; 250,000 take at most a second
MAX_INTEGER_BITS = 128  # torch's magic number has 80
DTYPES = {
    "torch.FloatStorage": ElementType.F32,
    "torch.HalfStorage": ElementType.F16,
    "torch.BFloat16Storage": ElementType.BF16,
    "torch.DoubleStorage": ElementType.F64,
    "torch.LongStorage": ElementType.I64,
    "torch.IntStorage": ElementType.I32,
    "torch.ShortStorage": ElementType.I16,
    "torch.CharStorage": ElementType.I8,
    "torch.ByteStorage": ElementType.U8,
    "torch.BoolStorage": ElementType.BOOL,
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


class Storage(NamedTuple):
    """A run of elements in the file, which tensors are views of."""

    key: str
    dtype: ElementType
    num_elements: int

    @property
    def num_bytes(self) -> int:
        """Size of the elements in bytes."""
        return self.num_elements * self.dtype.itemsize


class TensorView(NamedTuple):
    """A tensor: offset and stride count elements of its storage."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        """Number of elements that the tensor has."""
        return math.prod(self.size)

    @property
    def num_spanned(self) -> int:
        """Number of elements of the storage from the tensor's first to its last."""
        steps = ((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))
        return 1 + sum(steps) if self.num_elements else 0


Token = tuple[str, Any]  # a letter, and the string, number or name that it carries


def split_pickle(stream: io.BytesIO) -> list[Token]:
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


def read_state_dict(tokens: list[Token]) -> dict[str, TensorView]:
    """Return the tensors of a pickle that has the form of a state dict."""
    letters = "".join(letter for letter, _ in tokens)
    values = [value for _, value in tokens]
    if not STATE_DICT.fullmatch(letters):
        raise CheckpointError(_describe_other(letters, values))
    views: dict[str, TensorView] = {}
    made: dict[int, TensorView] = {}  # by the place of the call
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


def _read_view(match: re.Match[str], letters: str, values: list[Any]) -> TensorView:
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
    storage = Storage(key, DTYPES[storage_class], num_elements)
    return TensorView(storage, values[match.end(1)], size, stride)


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


def _check_place(name: str, view: TensorView) -> None:
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


def _check_sum(views: dict[str, TensorView]) -> None:
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


def find_storages(views: dict[str, TensorView]) -> dict[str, Storage]:
    """Return the storages of tensors by key, each of which is described in one way."""
    storages: dict[str, Storage] = {}
    for view in views.values():
        if storages.setdefault(view.storage.key, view.storage) != view.storage:
            raise DamagedFileError(
                f"names the storage {view.storage.key[:80]!a} twice, and differently"
            )
    return storages
