"""TensorFlow checkpoints that are broken or hostile, made of the golden one that TensorFlow wrote.

Entries are changed before blocks are sealed, so that what is wrong is what the case says and not a
checksum; where the checksum itself is the matter, bytes are changed after.
"""

from collections.abc import Callable, Iterator, Sequence
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
from tests.hostile.case import Case

from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    DamagedFileError,
    MissingFileError,
    UnsafeFileError,
)
from bertkit.checkpoints.protobuf_wire import Message
from bertkit.checkpoints.tensor_bundle import read_table

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tensorflow"
FILES = {
    path.name: path.read_bytes() for path in sorted(GOLDEN.iterdir()) if path.name != "expected.npz"
}
INDEX = f"{PREFIX}.index"
DATA = f"{PREFIX}.data-00000-of-00001"
PAIRS = read_table(GOLDEN / INDEX)
BIAS = b"bert/pooler/dense/bias"  # 8 numbers, 32 bytes
KERNEL = b"bert/pooler/dense/kernel"
STATE = b"bert/pooler/dense/bias/adam_m"
ENDLESS = b"\xff" * 12


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


def make(
    defect: str,
    variants: Sequence[dict[str, bytes]],
    error: type[BertkitError] | None,
    match: str = "",
) -> Iterator[Case]:
    for number, files in enumerate(variants):
        yield Case(defect, number, files, error, match)


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


def bits_of_the_index() -> Iterator[Case]:
    places = range(0, len(FILES[INDEX]) - 60, len(FILES[INDEX]) // 19)
    files = [with_index(flip(FILES[INDEX], place, 1 << place % 8)) for place in places]
    yield from make("TensorFlow: a bit of the index", files, DamagedFileError, "checksum differs")


def bits_of_a_tensor() -> Iterator[Case]:
    start, _ = find(BIAS)
    files = [
        {**FILES, DATA: flip(FILES[DATA], start + byte, 1 << byte % 8)} for byte in range(0, 32, 2)
    ]
    yield from make(
        "TensorFlow: a bit of a tensor", files, DamagedFileError, r"pooler/dense/bias.*checksum"
    )


def wrong_checksum_of_a_tensor() -> Iterator[Case]:
    offset, checksum = find(BIAS)
    files = [
        with_pairs({BIAS: entry((8,), offset, 32, wrong)})
        for wrong in (0, checksum ^ 1, 0xFFFFFFFF)
    ]
    yield from make(
        "TensorFlow: a tensor's checksum", files, DamagedFileError, r"pooler/dense/bias.*checksum"
    )


def truncated_index() -> Iterator[Case]:
    size = len(FILES[INDEX])
    lengths = (0, 1, 7, 8, 47, 48, 1000, size // 2, size - 49, size - 48, size - 8, size - 1)
    files = [with_index(FILES[INDEX][:length]) for length in lengths]
    yield from make(
        "TensorFlow: truncated index", files, DamagedFileError, "isn't a whole index .* ends with"
    )


def truncated_data() -> Iterator[Case]:
    size = len(FILES[DATA])
    lengths = (0, 1, 4, 31, 1000, size // 2, size - 100, size - 9, size - 1)
    files = [{**FILES, DATA: FILES[DATA][:length]} for length in lengths]
    yield from make("TensorFlow: truncated data", files, DamagedFileError, "ends at byte")


def another_kind_of_file() -> Iterator[Case]:
    starts = (b"<!DOCTYPE html>", b"version https://git-lfs.github.com/spec/v1\n", b"PK\x03\x04")
    files = [with_index(start.ljust(200, b" ")) for start in starts]
    files += [with_index(flip(FILES[INDEX], -1 - byte)) for byte in range(8)]
    yield from make(
        "TensorFlow: no table", files, DamagedFileError, "isn't a whole index of a TensorFlow"
    )


def block_outside() -> Iterator[Case]:
    places = [varint(at) + varint(size) for at in (0, 4000) for size in (5000, 1 << 32, 1 << 63)]
    body = FILES[INDEX][:-48]
    files = [with_index(body + footer(place, varint(0) + varint(0))) for place in places]
    files += [with_places([place]) for place in places]
    yield from make("TensorFlow: a block outside", files, DamagedFileError, "a block ends at byte")


def overlapping_blocks() -> Iterator[Case]:
    size = varint(len(block(sorted(PAIRS.items()))))
    files = [with_places([varint(0) + size, varint(second) + size]) for second in (0, 1, 1000)]
    yield from make("TensorFlow: overlapping blocks", files, DamagedFileError, "blocks overlap")


def number_without_end() -> Iterator[Case]:
    files = [
        with_index(FILES[INDEX][:-48] + (ENDLESS * 4)[:40] + FILES[INDEX][-8:]),
        with_blocks(ENDLESS + restart_array([0])),
        with_blocks(b"\x00" + ENDLESS + restart_array([0])),
        with_blocks(b"\x00\x01" + ENDLESS + restart_array([0])),
        with_blocks(b"\x80" * 9 + b"\x02" + restart_array([0])),  # 2⁶⁴
        with_blocks(b"\x80" + restart_array([0])),
        with_pairs({BIAS: ENDLESS}),
        with_pairs({BIAS: b"\x08" + ENDLESS}),
        with_pairs({b"": b"\x08" + ENDLESS}),
    ]
    yield from make("TensorFlow: a number without end", files, DamagedFileError, "has no end")


def length_over_the_end() -> Iterator[Case]:
    files = [
        with_blocks(b"\x00\x00" + varint(size) + b"rest" + restart_array([0]))
        for size in (5, 1 << 20, 1 << 40, (1 << 64) - 1)
    ]
    files += [with_pairs({BIAS: b"\x12" + varint(size) + b"rest"}) for size in (5, 1 << 40)]
    files += [with_pairs({BIAS: PAIRS[BIAS][:-1]}), with_pairs({b"": b"\x1a\x09"})]
    yield from make(
        "TensorFlow: a length over the end", files, DamagedFileError, "are announced and"
    )


def shared_beginning_over_the_key() -> Iterator[Case]:
    files = [with_blocks(block_entry(n, b"a", b"") + restart_array([0])) for n in (1, 9, 1 << 40)]
    files += [
        with_blocks(block_entry(0, b"a", b"") + block_entry(n, b"b", b"") + restart_array([0]))
        for n in (2, 512, (1 << 64) - 1)
    ]
    yield from make("TensorFlow: a shared beginning", files, DamagedFileError, "a key shares")


def wrong_restarts() -> Iterator[Case]:
    counts = (0, 2, 1 << 16, 0xFFFFFFFF)
    files = [with_blocks(block([])[:4] + count.to_bytes(4, "little")) for count in counts]
    files += [with_blocks(b""), with_blocks(b"\0\0\0")]
    yield from make("TensorFlow: wrong restarts", files, DamagedFileError, "restarts")


def bomb_of_keys() -> Iterator[Case]:
    long = b"k" * 513
    sharing = [block_entry(0, b"k" * 512, b""), block_entry(512, b"k", b"")]
    contents = [block([(long, b"")]), b"".join(sharing) + restart_array([0])]
    contents.append(block_entry(0, b"", b"")[:1] + varint(1 << 40) + b"\0" + restart_array([0]))
    files = [with_blocks(content) for content in contents]
    yield from make("TensorFlow: a bomb of keys", files, UnsafeFileError, "has a name of")


def too_many_entries() -> Iterator[Case]:
    pairs = {f"{number:05d}".encode(): b"" for number in range(20_001)}
    files = [with_index(table(cut_blocks(pairs)))]
    yield from make("TensorFlow: too many entries", files, UnsafeFileError, "more than 20,000")


def too_many_fields() -> Iterator[Case]:
    files = [with_pairs({BIAS: field(4, 1) * 1001}), with_pairs({b"": field(9, 1) * 400_000})]
    files.append(with_pairs({BIAS: field(1, 1) + field(2, field(2, b"") * 1001)}))
    yield from make("TensorFlow: too many fields", files, UnsafeFileError, "more than 100 field")


def twice_or_unsorted() -> Iterator[Case]:
    golden = sorted(PAIRS.items())
    orders = [
        [golden[0], golden[0], *golden[1:]],
        [*golden, golden[-1]],
        [*golden[:5], golden[4], *golden[5:]],
        golden[::-1],
        [*golden[1:], golden[0]],
    ]
    files = [with_blocks(block(order)) for order in orders]
    files.append(with_index(table([(b"y", block(golden)), (b"z", block(golden[-1:]))])))
    yield from make(
        "TensorFlow: a key twice", files, DamagedFileError, r"has b'.*' twice|isn't sorted"
    )


def snappy() -> Iterator[Case]:
    files = [with_index(table(cut_blocks(PAIRS), kind=1)), with_blocks(b"", kind=1)]
    yield from make("TensorFlow: snappy", files, CheckpointError, "compressed with snappy")


def unknown_kind_of_block() -> Iterator[Case]:
    files = [with_index(table(cut_blocks(PAIRS), kind=kind)) for kind in (2, 3, 4, 7, 255)]
    yield from make("TensorFlow: type of block", files, DamagedFileError, "the unknown type")


def huge_shape() -> Iterator[Case]:
    shapes = [(1 << 62,), (1 << 40, 1 << 40), (2**63 - 1,) * 8, (8, 1 << 32), (1 << 61, 8)]
    files = [changed_bias(shape) for shape in shapes]
    files += [changed_bias((1 << 30,), size=1 << 62)]
    yield from make("TensorFlow: a huge shape", files, DamagedFileError, "can't have")


def negative_dimension() -> Iterator[Case]:
    shapes = [(-8,), (-1, -8), (-(1 << 63),), (0,), (0, 1 << 62), (8, 0)]
    files = [changed_bias(shape) for shape in shapes]
    yield from make("TensorFlow: a negative size", files, DamagedFileError, "each at least 1")


def too_many_dimensions() -> Iterator[Case]:
    files = [changed_bias((1,) * extra + (8,)) for extra in (8, 50, 90)]
    yield from make("TensorFlow: dimensions", files, DamagedFileError, "at most 8 sizes")


def several_shapes() -> Iterator[Case]:
    files = []
    for number, size in ((1, 1), (90, 1), (90, 90)):
        shape = field(2, field(2, field(1, 8)) * size)
        files.append(with_pairs({BIAS: field(1, 1) + shape * (number + 1)}))
    yield from make("TensorFlow: several shapes", files, DamagedFileError, r"has \d+ shapes")


def shape_against_size() -> Iterator[Case]:
    files = [changed_bias((7,)), changed_bias((9,)), changed_bias((8, 8)), changed_bias(())]
    files += [changed_bias(size=size) for size in (0, 1, 31, 33, -32, 1 << 40)]
    files += [changed_bias(dtype=dtype) for dtype in (2, 9, 14, 19)]
    yield from make("TensorFlow: shape against size", files, DamagedFileError, "can't have")


def entry_outside_the_data() -> Iterator[Case]:
    files = [changed_bias(move=move) for move in (len(FILES[DATA]), 1 << 40, (1 << 62))]
    files.append(changed_bias((1 << 30,), size=1 << 32))
    yield from make("TensorFlow: outside the data", files, DamagedFileError, "ends at byte")


def negative_offset() -> Iterator[Case]:
    files = [changed_bias(move=move) for move in (-(1 << 20), -(1 << 62))]
    yield from make("TensorFlow: a negative offset", files, DamagedFileError, r"bytes at -")


def tensors_over_each_other() -> Iterator[Case]:
    files = [changed_bias(move=move) for move in (-1, -32, 1, 16)]
    size = len(FILES[DATA])
    whole = entry((size // 4,), 0, size, masked_crc(FILES[DATA]))
    giants = {f"giant/{number}".encode(): whole for number in range(5000)}
    files += [with_pairs({b"giant": whole}), with_pairs(giants)]
    yield from make("TensorFlow: tensors overlap", files, UnsafeFileError, "lies over another")


def missing_data() -> Iterator[Case]:
    files = [{name: data for name, data in FILES.items() if name != DATA}]
    files.append(with_pairs({b"": header(2)}))
    files.append(with_pairs({b"": header(1000)}))
    yield from make("TensorFlow: missing data", files, MissingFileError, "data-0.*doesn't exist")


def missing_index_or_config() -> Iterator[Case]:
    files = [
        {name: data for name, data in FILES.items() if name != missing}
        for missing in (INDEX, "bert_config.json")
    ]
    yield from make(
        "TensorFlow: missing index or config", files, MissingFileError, "no checkpoint|doesn't exis"
    )


def number_of_data_files() -> Iterator[Case]:
    files = [with_pairs({b"": header(n)}) for n in (1001, 1 << 20, (1 << 31) - 1, (1 << 63) - 1)]
    yield from make("TensorFlow: many data files", files, UnsafeFileError, "at most 1,000")


def no_data_files() -> Iterator[Case]:
    files = [with_pairs({b"": header(number)}) for number in (0, -1, -(1 << 63))]
    yield from make("TensorFlow: no data files", files, DamagedFileError, "data files, byte order")


def unknown_data_file() -> Iterator[Case]:
    files = [changed_bias(shard=shard) for shard in (1, -1, 1 << 31, (1 << 63) - 1)]
    yield from make("TensorFlow: data file", files, DamagedFileError, "it lies in data file")


def big_endian() -> Iterator[Case]:
    files = [with_pairs({b"": header(endianness=1)})]
    yield from make("TensorFlow: big-endian", files, CheckpointError, "big-endian")


def unknown_byte_order() -> Iterator[Case]:
    files = [with_pairs({b"": header(endianness=order)}) for order in (2, 255, -1)]
    yield from make("TensorFlow: byte order", files, DamagedFileError, "byte order")


def no_header() -> Iterator[Case]:
    pairs = {key: value for key, value in PAIRS.items() if key}
    files = [with_index(table(cut_blocks(pairs))), with_index(table([]))]
    files.append(with_blocks(block([])))
    yield from make("TensorFlow: no header", files, DamagedFileError, "it has no header")


def later_version() -> Iterator[Case]:
    files = [with_pairs({b"": header(min_consumer=version)}) for version in (2, 1000)]
    yield from make("TensorFlow: later version", files, CheckpointError, "reader of version")


def slices() -> Iterator[Case]:
    part = field(1, field(1, 0) + field(2, 8))
    files = [
        with_pairs({BIAS: entry((8,), 0, 0, 0, slices=part)}),
        with_pairs({BIAS: entry((8,), 0, 0, 0, slices=part * 100)}),
        with_pairs({b"\0\x01bert/pooler\0\x01": PAIRS[BIAS]}),
    ]
    yield from make("TensorFlow: slices", files, CheckpointError, "holds variables in slices")


def unknown_type() -> Iterator[Case]:
    files = [changed_bias(dtype=dtype) for dtype in (0, 4, 7, 8, 10, 20, 21, 101, 1 << 31, -1)]
    yield from make("TensorFlow: type", files, CheckpointError, "has TensorFlow's type")


def objects() -> Iterator[Case]:
    files = [with_pairs({b"_CHECKPOINTABLE_OBJECT_GRAPH": b""})]
    yield from make(
        "TensorFlow: tf.train.Checkpoint", files, CheckpointError, "train.Checkpoint of TensorFlow"
    )


def unprintable_name() -> Iterator[Case]:
    names = (b"\x1b[2Jbert", b"bert\nbert", b"bert\x00", "bert\u202e".encode())
    files = [with_pairs({name: PAIRS[BIAS]}) for name in names]
    yield from make("TensorFlow: a name", files, DamagedFileError, "can't be a name")


def wrong_wire_types() -> Iterator[Case]:
    files = [with_pairs({BIAS: bytes([1 << 3 | kind])}) for kind in (3, 4, 6, 7)]
    files += [with_pairs({BIAS: field(1, b"1")}), with_pairs({BIAS: field(1, 1) + field(2, 8)})]
    files.append(with_pairs({b"": field(3, 8) + field(1, 1)}))
    yield from make(
        "TensorFlow: wire type", files, DamagedFileError, "wire type|isn't a (number|message)"
    )


def two_names_for_one() -> Iterator[Case]:
    offset = len(FILES[DATA])
    extra = FILES[DATA] + b"\0" * 32
    again = entry((8,), offset, 32, masked_crc(b"\0" * 32))
    files = [{**with_pairs({b"bert.pooler.dense.bias": again}), DATA: extra}]
    yield from make("TensorFlow: two names", files, CheckpointError, "two variables mean")


def several_checkpoints() -> Iterator[Case]:
    files = [
        {**FILES, "model.ckpt-1000.index": FILES[INDEX]},
        {**FILES, "a.index": b"", "b.index": b""},
        {**FILES, "model.ckpt-1000": FILES[INDEX]},
    ]
    yield from make("TensorFlow: several", files, CheckpointError, r"holds \d checkpoints: ")


def first_version() -> Iterator[Case]:
    rest = {name: data for name, data in FILES.items() if name not in (INDEX, DATA)}
    files = [{**rest, name: FILES[INDEX]} for name in (PREFIX, "model.ckpt-1000")]
    yield from make("TensorFlow: version 1", files, CheckpointError, "first version of TensorFlow")


def broken_config() -> Iterator[Case]:
    contents = (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * ((1 << 20) + 1))
    files = [{**FILES, "bert_config.json": content} for content in contents]
    yield from make(
        "TensorFlow: config", files, DamagedFileError, "isn't JSON|JSON object|UTF-8|more than"
    )


def what_is_never_read() -> Iterator[Case]:
    """The optimizer's state, bytes after the last tensor, the graph: no model is made of them."""
    start, _ = find(STATE)
    files = [{**FILES, DATA: flip(FILES[DATA], start + byte)} for byte in (0, 31)]
    files += [{**FILES, DATA: FILES[DATA] + b"\xff" * 100}]
    files += [{**FILES, f"{PREFIX}.meta": b"\xff" * 100}, {**FILES, "checkpoint": b"\xff"}]
    files += [with_pairs({STATE: entry((8,), start, 32, 0)})]
    yield from make("TensorFlow: what is never read", files, None)


DEFECTS: tuple[Callable[[], Iterator[Case]], ...] = (
    bits_of_the_index,
    bits_of_a_tensor,
    wrong_checksum_of_a_tensor,
    truncated_index,
    truncated_data,
    another_kind_of_file,
    block_outside,
    overlapping_blocks,
    number_without_end,
    length_over_the_end,
    shared_beginning_over_the_key,
    wrong_restarts,
    bomb_of_keys,
    too_many_entries,
    too_many_fields,
    twice_or_unsorted,
    snappy,
    unknown_kind_of_block,
    huge_shape,
    negative_dimension,
    too_many_dimensions,
    several_shapes,
    shape_against_size,
    entry_outside_the_data,
    negative_offset,
    tensors_over_each_other,
    missing_data,
    missing_index_or_config,
    number_of_data_files,
    no_data_files,
    unknown_data_file,
    big_endian,
    unknown_byte_order,
    no_header,
    later_version,
    slices,
    unknown_type,
    objects,
    unprintable_name,
    wrong_wire_types,
    two_names_for_one,
    several_checkpoints,
    first_version,
    broken_config,
    what_is_never_read,
)


def cases() -> Iterator[Case]:
    """All of them."""
    for part in DEFECTS:
        yield from part()
