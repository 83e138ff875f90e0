"""TensorFlow checkpoints that are broken or hostile, made of the golden one that TensorFlow wrote.

Entries are changed before blocks are sealed, so that what is wrong is what the case says and not a
checksum; where the checksum itself is the matter, bytes are changed after.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.bundles import (
    PREFIX,
    Pairs,
    block,
    block_entry,
    cut_blocks,
    entry,
    field,
    footer,
    header,
    masked_crc,
    restart_array,
    seal,
    table,
    varint,
)
from tests.hostile.case import Case, Defects, make_cases

from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    DamagedFileError,
    MissingFileError,
    UnsafeFileError,
)
from bertkit.checkpoints.leveldb_table import read_table
from bertkit.checkpoints.protobuf_wire import Message

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tensorflow"
FILES = {
    path.name: path.read_bytes() for path in sorted(GOLDEN.iterdir()) if path.name != "expected.npz"
}
INDEX = f"{PREFIX}.index"
DATA = f"{PREFIX}.data-00000-of-00001"
PAIRS = read_table(GOLDEN / INDEX)
BIAS = b"bert/pooler/dense/bias"  # 8 numbers, 32 bytes
STATE = b"bert/pooler/dense/bias/adam_m"
ENDLESS = b"\xff" * 12

MakeFolders = Callable[[], list[dict[str, bytes]]]
DEFECTS: list[tuple[MakeFolders, type[BertkitError] | None, str]] = []


def defect(
    error: type[BertkitError] | None, match: str = ""
) -> Callable[[MakeFolders], MakeFolders]:
    """Make a case of each folder that a function returns; its name is that of the defect."""

    def add(make_folders: MakeFolders) -> MakeFolders:
        DEFECTS.append((make_folders, error, match))
        return make_folders

    return add


def find(key: bytes) -> tuple[int, int]:
    """Where the tensor of a key lies in the data, and its checksum."""
    message = Message.parse(PAIRS[key], "golden")
    return message.integer(4), message.integer(6)


def with_index(index: bytes) -> dict[str, bytes]:
    return {**FILES, INDEX: index}


def with_pairs(changes: Pairs) -> dict[str, bytes]:
    """The golden folder with entries changed or added."""
    return with_index(table(cut_blocks({**PAIRS, **changes})))


def with_blocks(content: bytes, kind: int = 0) -> dict[str, bytes]:
    """The golden folder with an index whose only block is this one."""
    return with_index(table([(b"~", content)], kind))


def with_places(places: Sequence[bytes]) -> dict[str, bytes]:
    """The golden folder with an index that says of its one block that it lies in these places."""
    data = seal(block(sorted(PAIRS.items())))
    index = block([(bytes([number]), place) for number, place in enumerate(places)])
    metaindex = varint(len(data)) + varint(len(block([])))
    data += seal(block([]))
    return with_index(
        data + seal(index) + footer(metaindex, varint(len(data)) + varint(len(index)))
    )


def flip(data: bytes, position: int, mask: int = 1) -> bytes:
    changed = bytearray(data)
    changed[position] ^= mask
    return bytes(changed)


def changed_bias(
    shape: Sequence[int] = (8,), size: int = 32, *, dtype: int = 1, shard: int = 0, move: int = 0
) -> dict[str, bytes]:
    """The golden folder in which the entry of the pooler's bias says something else."""
    offset, checksum = find(BIAS)
    return with_pairs({BIAS: entry(shape, offset + move, size, checksum, dtype=dtype, shard=shard)})


@defect(DamagedFileError, "isn't a whole index .* ends with")
def truncated_index() -> list[dict[str, bytes]]:
    size = len(FILES[INDEX])
    lengths = (0, 1, 7, 8, 47, 48, 1000, size // 2, size - 49, size - 48, size - 8, size - 1)
    return [with_index(FILES[INDEX][:length]) for length in lengths]


@defect(DamagedFileError, "ends at byte")
def truncated_data() -> list[dict[str, bytes]]:
    size = len(FILES[DATA])
    lengths = (0, 1, 4, 31, 1000, size // 2, size - 100, size - 9, size - 1)
    return [{**FILES, DATA: FILES[DATA][:length]} for length in lengths]


@defect(DamagedFileError, "isn't a whole index of a TensorFlow")
def another_kind_of_file() -> list[dict[str, bytes]]:
    starts = (b"<!DOCTYPE html>", b"version https://git-lfs.github.com/spec/v1\n", b"PK\x03\x04")
    files = [with_index(start.ljust(200, b" ")) for start in starts]
    files += [with_index(flip(FILES[INDEX], -1 - byte)) for byte in range(8)]
    return files


@defect(DamagedFileError, r"a block ends at byte [\d,]+ of [\d,]+")
def block_outside() -> list[dict[str, bytes]]:
    places = [varint(at) + varint(size) for at in (0, 4000) for size in (5000, 1 << 32, 1 << 63)]
    body = FILES[INDEX][:-48]
    files = [with_index(body + footer(place, varint(0) + varint(0))) for place in places]
    files += [with_places([place]) for place in places]
    return files


@defect(DamagedFileError, "are announced and")
def length_over_the_end() -> list[dict[str, bytes]]:
    files = [
        with_blocks(b"\x00\x00" + varint(size) + b"rest" + restart_array([0]))
        for size in (5, 1 << 20, 1 << 40, (1 << 64) - 1)
    ]
    files += [with_pairs({BIAS: b"\x12" + varint(size) + b"rest"}) for size in (5, 1 << 40)]
    files += [with_pairs({BIAS: PAIRS[BIAS][:-1]}), with_pairs({b"": b"\x1a\x09"})]
    return files


@defect(DamagedFileError, r"a key shares [\d,]+ bytes with one of \d+")
def shared_beginning_over_the_key() -> list[dict[str, bytes]]:
    files = [with_blocks(block_entry(n, b"a", b"") + restart_array([0])) for n in (1, 9, 1 << 40)]
    files += [
        with_blocks(block_entry(0, b"a", b"") + block_entry(n, b"b", b"") + restart_array([0]))
        for n in (2, 512, (1 << 64) - 1)
    ]
    return files


@defect(DamagedFileError, r"a block of \d+ bytes has [\d,]+ restarts")
def wrong_restarts() -> list[dict[str, bytes]]:
    counts = (0, 2, 1 << 16, 0xFFFFFFFF)
    files = [with_blocks(block([])[:4] + count.to_bytes(4, "little")) for count in counts]
    files += [with_blocks(b""), with_blocks(b"\0\0\0")]
    return files


@defect(UnsafeFileError, "has a name of")
def bomb_of_keys() -> list[dict[str, bytes]]:
    long = b"k" * 513
    sharing = [block_entry(0, b"k" * 512, b""), block_entry(512, b"k", b"")]
    contents = [block([(long, b"")]), b"".join(sharing) + restart_array([0])]
    contents.append(block_entry(0, b"", b"")[:1] + varint(1 << 40) + b"\0" + restart_array([0]))
    return [with_blocks(content) for content in contents]


@defect(UnsafeFileError, "more than 100 field")
def too_many_fields() -> list[dict[str, bytes]]:
    files = [with_pairs({BIAS: field(4, 1) * 1001}), with_pairs({b"": field(9, 1) * 400_000})]
    files.append(with_pairs({BIAS: field(1, 1) + field(2, field(2, b"") * 1001)}))
    return files


GOLDEN_PAIRS = sorted(PAIRS.items())


@defect(DamagedFileError, r"has b'.*' twice")
def key_twice() -> list[dict[str, bytes]]:
    first, *_, last = GOLDEN_PAIRS
    orders = [[first, *GOLDEN_PAIRS], [*GOLDEN_PAIRS, last]]
    orders.append([*GOLDEN_PAIRS[:5], GOLDEN_PAIRS[4], *GOLDEN_PAIRS[5:]])
    in_two_blocks = table([(b"y", block(GOLDEN_PAIRS)), (b"z", block([last]))])
    return [*(with_blocks(block(order)) for order in orders), with_index(in_two_blocks)]


@defect(DamagedFileError, "can't have")
def huge_shape() -> list[dict[str, bytes]]:
    shapes = [(1 << 62,), (1 << 40, 1 << 40), (2**63 - 1,) * 8, (8, 1 << 32), (1 << 61, 8)]
    files = [changed_bias(shape) for shape in shapes]
    files += [changed_bias((1 << 30,), size=1 << 62)]
    return files


@defect(DamagedFileError, r"has \d+ shapes")
def several_shapes() -> list[dict[str, bytes]]:
    files = []
    for number, size in ((1, 1), (90, 1), (90, 90)):
        shape = field(2, field(2, field(1, 8)) * size)
        files.append(with_pairs({BIAS: field(1, 1) + shape * (number + 1)}))
    return files


@defect(DamagedFileError, "can't have")
def shape_against_size() -> list[dict[str, bytes]]:
    files = [changed_bias((7,)), changed_bias((9,)), changed_bias((8, 8)), changed_bias(())]
    files += [changed_bias(size=size) for size in (0, 1, 31, 33, -32, 1 << 40)]
    files += [changed_bias(dtype=dtype) for dtype in (2, 9, 14, 19)]
    return files


@defect(DamagedFileError, "ends at byte")
def entry_outside_the_data() -> list[dict[str, bytes]]:
    files = [changed_bias(move=move) for move in (len(FILES[DATA]), 1 << 40, (1 << 62))]
    files.append(changed_bias((1 << 30,), size=1 << 32))
    return files


@defect(UnsafeFileError, "lies over another tensor")
def tensors_over_each_other() -> list[dict[str, bytes]]:
    files = [changed_bias(move=move) for move in (-1, -32, 1, 16)]
    size = len(FILES[DATA])
    whole = entry((size // 4,), 0, size, masked_crc(FILES[DATA]))
    giants = {f"giant/{number}".encode(): whole for number in range(5000)}
    files += [with_pairs({b"giant": whole}), with_pairs(giants)]
    return files


@defect(MissingFileError, "data-0.*doesn't exist")
def missing_data() -> list[dict[str, bytes]]:
    files = [{name: data for name, data in FILES.items() if name != DATA}]
    files.append(with_pairs({b"": header(2)}))
    files.append(with_pairs({b"": header(1000)}))
    return files


@defect(DamagedFileError, "it has no header")
def no_header() -> list[dict[str, bytes]]:
    pairs = {key: value for key, value in PAIRS.items() if key}
    files = [with_index(table(cut_blocks(pairs))), with_index(table([]))]
    files.append(with_blocks(block([])))
    return files


@defect(DamagedFileError, "wire type|isn't a (number|message)")
def wrong_wire_types() -> list[dict[str, bytes]]:
    files = [with_pairs({BIAS: bytes([1 << 3 | kind])}) for kind in (3, 4, 6, 7)]
    files += [with_pairs({BIAS: field(1, b"1")}), with_pairs({BIAS: field(1, 1) + field(2, 8)})]
    files.append(with_pairs({b"": field(3, 8) + field(1, 1)}))
    return files


@defect(CheckpointError, "two variables mean")
def two_names_for_one() -> list[dict[str, bytes]]:
    offset = len(FILES[DATA])
    extra = FILES[DATA] + b"\0" * 32
    again = entry((8,), offset, 32, masked_crc(b"\0" * 32))
    return [{**with_pairs({b"bert.pooler.dense.bias": again}), DATA: extra}]


@defect(None)
def what_is_never_read() -> list[dict[str, bytes]]:
    """The optimizer's state, bytes after the last tensor, the graph: no model is made of them."""
    start, _ = find(STATE)
    files = [{**FILES, DATA: flip(FILES[DATA], start + byte)} for byte in (0, 31)]
    files += [{**FILES, DATA: FILES[DATA] + b"\xff" * 100}]
    files += [{**FILES, f"{PREFIX}.meta": b"\xff" * 100}, {**FILES, "checkpoint": b"\xff"}]
    files += [with_pairs({STATE: entry((8,), start, 32, 0)})]
    return files


def _short_ones() -> Defects:
    offset, checksum = find(BIAS)
    size = varint(len(block(sorted(PAIRS.items()))))
    pairs = {f"{number:05d}".encode(): b"" for number in range(20_001)}
    orders = (GOLDEN_PAIRS[::-1], [*GOLDEN_PAIRS[1:], GOLDEN_PAIRS[0]])
    shapes = [(-8,), (-1, -8), (-(1 << 63),), (0,), (0, 1 << 62), (8, 0)]
    part = field(1, field(1, 0) + field(2, 8))
    names = (b"\x1b[2Jbert", b"bert\nbert", b"bert\x00", "bert\u202e".encode())
    contents = (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * ((1 << 20) + 1))
    return {
        ("wrong checksum of a tensor", DamagedFileError, r"pooler/dense/bias.*checksum"): [
            with_pairs({BIAS: entry((8,), offset, 32, wrong)})
            for wrong in (0, checksum ^ 1, 0xFFFFFFFF)
        ],
        ("overlapping blocks", DamagedFileError, "its blocks overlap or aren't in order"): [
            with_places([varint(0) + size, varint(second) + size]) for second in (0, 1, 1000)
        ],
        ("number without end", DamagedFileError, "has no end"): [
            with_index(FILES[INDEX][:-48] + (ENDLESS * 4)[:40] + FILES[INDEX][-8:]),
            with_blocks(ENDLESS + restart_array([0])),
            with_blocks(b"\x00\x01" + ENDLESS + restart_array([0])),
            with_blocks(b"\x80" * 9 + b"\x02" + restart_array([0])),  # 2⁶⁴
            with_pairs({BIAS: b"\x08" + ENDLESS}),
            with_pairs({b"": b"\x08" + ENDLESS}),
        ],
        ("too many entries", UnsafeFileError, "more than 20,000"): [
            with_index(table(cut_blocks(pairs)))
        ],
        ("unsorted keys", DamagedFileError, "isn't sorted"): [
            with_blocks(block(order)) for order in orders
        ],
        ("snappy", CheckpointError, "compressed with snappy"): [
            with_index(table(cut_blocks(PAIRS), kind=1)),
            with_blocks(b"", kind=1),
        ],
        ("unknown kind of block", DamagedFileError, "the unknown type"): [
            with_index(table(cut_blocks(PAIRS), kind=kind)) for kind in (2, 3, 4, 7, 255)
        ],
        ("negative dimension", DamagedFileError, "each at least 1"): [
            changed_bias(shape) for shape in shapes
        ],
        ("too many dimensions", DamagedFileError, "at most 8 sizes"): [
            changed_bias((1,) * extra + (8,)) for extra in (8, 50, 90)
        ],
        ("negative offset", DamagedFileError, r"bytes at -"): [
            changed_bias(move=move) for move in (-(1 << 20), -(1 << 62))
        ],
        ("missing index or config", MissingFileError, "no checkpoint|doesn't exis"): [
            {name: data for name, data in FILES.items() if name != missing}
            for missing in (INDEX, "bert_config.json")
        ],
        ("number of data files", UnsafeFileError, r"names [\d,]+ data files; at most 1,000"): [
            with_pairs({b"": header(n)}) for n in (1001, 1 << 20, (1 << 31) - 1, (1 << 63) - 1)
        ],
        ("no data files", DamagedFileError, "data files, byte order"): [
            with_pairs({b"": header(number)}) for number in (0, -1, -(1 << 63))
        ],
        ("unknown data file", DamagedFileError, r"it lies in data file -?\d+ of 1"): [
            changed_bias(shard=shard) for shard in (1, -1, 1 << 31, (1 << 63) - 1)
        ],
        ("big endian", CheckpointError, "big-endian"): [with_pairs({b"": header(endianness=1)})],
        ("unknown byte order", DamagedFileError, "byte order"): [
            with_pairs({b"": header(endianness=order)}) for order in (2, 255, -1)
        ],
        ("later version", CheckpointError, r"a reader of version \d+, and this one has 1"): [
            with_pairs({b"": header(min_consumer=version)}) for version in (2, 1000)
        ],
        ("slices", CheckpointError, "holds variables in slices"): [
            with_pairs({BIAS: entry((8,), 0, 0, 0, slices=part)}),
            with_pairs({BIAS: entry((8,), 0, 0, 0, slices=part * 100)}),
            with_pairs({b"\0\x01bert/pooler\0\x01": PAIRS[BIAS]}),
        ],
        ("unknown type", CheckpointError, r"has TensorFlow's type -?\d+; read are float32, f"): [
            changed_bias(dtype=dtype) for dtype in (0, 4, 7, 8, 10, 20, 21, 101, 1 << 31, -1)
        ],
        ("objects", CheckpointError, "train.Checkpoint of TensorFlow"): [
            with_pairs({b"_CHECKPOINTABLE_OBJECT_GRAPH": b""})
        ],
        ("unprintable name", DamagedFileError, "can't be a name"): [
            with_pairs({name: PAIRS[BIAS]}) for name in names
        ],
        ("broken config", DamagedFileError, "isn't JSON|JSON object|UTF-8|more than"): [
            {**FILES, "bert_config.json": content} for content in contents
        ],
    }


def cases() -> Iterator[Case]:
    """All of them."""
    functions = {
        (make_folders.__name__.replace("_", " "), error, match): make_folders()
        for make_folders, error, match in DEFECTS
    }
    for case in make_cases(_short_ones() | functions, dict):
        yield replace(case, defect=f"TensorFlow: {case.defect}")
