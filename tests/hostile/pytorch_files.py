"""`pytorch_model.bin` that is broken or hostile, each in an otherwise whole folder."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import cycle

import torch
from tests.hostile.case import Case, Defects, make_cases
from tests.hostile.whole import WEIGHTS, folder_with, tensors, weights_file
from tests.pickles import (
    PROTO,
    STOP,
    archive,
    call,
    group,
    integer,
    mapping,
    name,
    pack,
    state,
    storage,
    stream,
    tensor,
    text,
)

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError

FILE = "pytorch_model.bin"
BIAS = "bert.pooler.dense.bias"
HUGE = 1 << 62
NO_TENSORS = "holds something other than tensors"


def cases() -> Iterator[Case]:
    """All of them."""
    for part in PARTS:
        for case in make_cases(part(), lambda content: folder_with({WEIGHTS: None, FILE: content})):
            match = rf"/{FILE} .*({case.match})"
            yield replace(case, defect=f"PyTorch: {case.defect}", match=match)


def _in_turn(pickles: Iterable[bytes]) -> Iterator[bytes]:
    """Each pickle in one of the two forms of the file, in turn."""
    for content, write in zip(pickles, cycle((archive, stream)), strict=False):
        yield write(content)


@cache
def _items() -> Mapping[str, bytes]:
    """The whole model as a pickle has it; the storages are `_data`."""
    return {
        key: tensor(
            storage(str(number), num_elements=value.numel()),
            size=value.shape,
            stride=value.stride(),
        )
        for number, (key, value) in enumerate(tensors().items())
    }


@cache
def _data() -> Mapping[str, bytes]:
    return {str(number): value.numpy().tobytes() for number, value in enumerate(tensors().values())}


def _streamed(content: bytes) -> bytes:
    """A pickle of the whole model, in the older form."""
    storages = [(key, len(data) // 4, data) for key, data in _data().items()]
    return stream(content, storages)


def _saved(content: object, **options: bool) -> bytes:
    written = io.BytesIO()
    torch.save(content, written, **options)
    return written.getvalue()


def _calls() -> Defects:
    wanted = [
        ("os.system", "touch canary"),
        ("posix.system", "touch canary"),
        ("subprocess.Popen", "touch canary"),
        ("builtins.eval", "open('canary', 'w')"),
        ("__builtin__.eval", "open('canary', 'w')"),
        ("builtins.__import__", "antigravity"),
        ("pickle.loads", "cos\nsystem\n"),
        ("torch.load", "pytorch_model.bin"),
        ("torch.hub.load", "somebody/something"),
        ("torch.jit.load", "pytorch_model.bin"),
        ("shutil.rmtree", "canary"),
    ]
    plain = [PROTO + call(dotted, text(argument)) + STOP for dotted, argument in wanted]
    stacked = [
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in parts)
        + b"\x93"
        + group(text("touch canary"))
        + b"R."
        for parts in [dotted.rsplit(".", 1) for dotted, _ in wanted[:6]]
        + [("torch", "_utils._rebuild_tensor_v2.__globals__"), ("torch._utils", "os.system")]
    ]
    attribute = call("builtins.getattr", name("os.path"), text("system"))
    chains = [
        PROTO + call("builtins.getattr", text(""), text("join")) + STOP,
        PROTO + attribute + group(text("touch canary")) + b"R" + STOP,
        PROTO + call("operator.attrgetter", text("__class__")) + group(text("")) + b"R" + STOP,
        PROTO + call("functools.partial", name("os.system"), text("touch canary")) + b")R" + STOP,
        PROTO + call("builtins.map", name("os.system"), b"]") + STOP,
    ]
    return {
        ("a call", UnsafeFileError, r"asks to call [\w.]+, .*not called"): map(archive, plain),
        ("a call in the older form", UnsafeFileError, "asks to call"): map(stream, plain),
        ("a call by stacked names", UnsafeFileError, "asks to call"): _in_turn(stacked),
        ("a chain of attributes", UnsafeFileError, "asks to call"): _in_turn(chains),
    }


def _hidden_calls() -> Defects:
    evil = call("os.system", text("touch canary"))
    whole = mapping(*((text(key), value) for key, value in _items().items()))
    programs = [
        whole + b"(" + text("zzz") + evil + b"u",
        whole + evil + b"0",
        whole + mapping((text("_metadata"), evil)) + b"b",
        b"(" + whole + evil + b"t",
        whole + b"q\x00" + evil + b"h\x00",
    ]
    contents = [PROTO + program + STOP for program in programs]
    places = [tensor(evil), tensor(storage().replace(text("cpu"), evil)), evil + b"Q"]
    pickle = PROTO + evil + STOP
    start = stream(b"", [])
    first, third = (start.index(PROTO, place) for place in (0, 18))
    return {
        ("a call behind a whole model", UnsafeFileError, r"asks to call os\.system"): [
            write(content) for content in contents for write in (_whole_archive, _streamed)
        ],
        ("a call in place of a storage", UnsafeFileError, r"asks to call os\.system"): _in_turn(
            state({BIAS: value}) for value in places
        ),
        ("a call in another pickle of the stream", UnsafeFileError, r"asks to call os\.system"): [
            pickle,
            start[:third] + pickle,
            stream(state({}) + pickle, []),
            start[:first] + pickle + start,
        ],
    }


def _whole_archive(content: bytes) -> bytes:
    return archive(content, _data())


def _other_operations() -> Defects:
    programs = [
        b"(ios\nsystem\n",  # INST
        b"(" + text("touch canary") + b"o",  # OBJ
        b"}" + group() + b"\x81",  # NEWOBJ
        b"}" + group() + b"}\x92",  # NEWOBJ_EX
        b"\x82\x01",  # EXT1
        b"P1\n",  # PERSID
        b"\x97",  # NEXT_BUFFER
        b"\x96" + struct.pack("<Q", HUGE),  # BYTEARRAY8
        b"\x8d" + struct.pack("<Q", HUGE),  # BINUNICODE8
        b"B" + struct.pack("<I", 1 << 31),  # BINBYTES
        b"\x8b" + struct.pack("<i", 1 << 30),  # LONG4
        b"I1\n",  # INT
        b"\xff",
    ]
    return {
        (
            "an operation that no weights need",
            UnsafeFileError,
            r"has the pickle operation b['\"].+['\"] at byte [\d,]+, which no",
        ): (archive(PROTO + program + STOP) for program in programs)
    }


def _misused_names() -> Defects:
    rebuild = "torch._utils._rebuild_tensor_v2"
    values = [
        call("torch.FloatStorage", integer(1 << 40)),
        call("collections.OrderedDict", integer(1 << 40)),
        call("collections.OrderedDict", b"](Ne"),
        call(rebuild),
        call(rebuild, storage(), text("0"), group(), group(), b"\x89", b"}"),
        call(rebuild, storage(), integer(0), b"]", b"]", b"\x89", b"}"),
        call(rebuild, storage(), integer(0), group(text("4")), group(text("1")), b"\x89", b"}"),
        call("torch._utils._rebuild_parameter", text("a"), b"\x88", b"}"),
        name(rebuild) + b"]R",
        b"})R",
        name(rebuild) + b"}b",
        name("torch.FloatStorage") + text("a") + b"Ns",
        b"}Na",
    ]
    return {
        ("an allowed name used for something else", CheckpointError, NO_TENSORS): (
            archive(state({BIAS: value})) for value in values
        )
    }


def _bombs() -> Defects:
    opened = b"}(" + text("a")
    doubled = b")" + b"".join(b"q%ch%c\x86" % (index, index) for index in range(200))
    same = [text(f"t{number}") + b"h\x00" for number in range(20_000)]
    groups = (
        b"(" + b"".join(same[start : start + 4000]) + b"u" for start in range(0, 20_000, 4000)
    )
    return {
        ("a bomb of memorized values", CheckpointError, NO_TENSORS): _in_turn(
            [PROTO + b"N" + b"\x94" * 200_000 + STOP, PROTO + b"]" + b"\x94" * 200_000 + STOP]
        ),
        ("deep nesting", CheckpointError, NO_TENSORS): _in_turn(
            [
                PROTO + b"(" * 101 + STOP,
                PROTO + b"](" * 101 + STOP,
                PROTO + opened * 101 + STOP,
                PROTO + b"](" * 100 + b"(" + b"e" * 100 + STOP,
                PROTO + opened * 30_000 + b"N" + b"u" * 30_000 + STOP,
                *(PROTO + start + b"\x85" * 249_000 + STOP for start in (b"N", b"]", b"}")),
                PROTO + b"}N" + b"\x85" * 240_000 + b"Ns" + STOP,  # the key of a dict, to be hashed
            ]
        ),
        ("too many operations", UnsafeFileError, "a pickle of over 250,000 operations"): _in_turn(
            [PROTO + b"N" + b"\x85" * 250_001, PROTO + b"}" + b"}b" * 200_000]
        ),
        ("too many values under way", CheckpointError, NO_TENSORS): _in_turn(
            [
                PROTO + program + STOP
                for program in (b"N" * 10_001, b"}" * 100_000, b"Nq\x00" + b"h\x00" * 10_000)
            ]
        ),
        ("references that double", CheckpointError, NO_TENSORS): [
            *_in_turn([PROTO + doubled + STOP, state({"a": doubled})]),
            *_in_turn([PROTO + mapping((doubled, b"N")) + STOP]),
        ],
        ("long integers", UnsafeFileError, "has an integer of over 128 bits"): _in_turn(
            [PROTO + b"\x8a" + bytes([size]) + b"\x7f" * size for size in (17, 100, 255)]
        ),
        (
            "too many tensors",
            UnsafeFileError,
            "has 20,001 tensors; no model needs over 20,000",
        ): _in_turn([state({"a": tensor() + b"q\x00"})[:-1] + b"".join(groups) + STOP]),
    }


def _broken_pickles() -> Defects:
    programs = [
        b"",
        b"N",
        b"h\x00" + STOP,
        b"NN\x93" + STOP,
        b"cos\nsystem",
        b"X" + struct.pack("<I", (1 << 32) - 1) + b"a" + STOP,
        b"T" + struct.pack("<I", 1 << 31) + b"a" + STOP,
        b"X\x01\x00\x00\x00\xff" + STOP,
    ]
    without = [
        STOP,
        b"(" + STOP,
        b"}(" + text("a") + b"u" + STOP,
        b"U\x01\xff" + STOP,
        b"\x95" + struct.pack("<Q", HUGE) + b"N" + STOP,
        b"R" + STOP,
    ]
    twice = mapping((text(BIAS), tensor()), (text(BIAS), tensor()))
    pair = b"](" + text("a\x1b[2J") + tensor() + b"e"
    ordered = b"](" + pair + pair + b"e"
    return {
        ("a pickle that isn't whole", DamagedFileError, "has a pickle"): (
            archive(PROTO + program) for program in programs
        ),
        ("a pickle that takes what isn't there", CheckpointError, NO_TENSORS): (
            archive(PROTO + program) for program in without
        ),
        ("a pickle of another protocol", DamagedFileError, "has no pickle of protocol 2 to 4"): map(
            archive, (b"", b"N.", b"\x80\x00N.", b"\x80\x01N.", b"\x80\x05N.", b"\x80\xffN.")
        ),
        ("a key twice in a dict", DamagedFileError, r"has the key '[\w.\\\[]+' twice"): _in_turn(
            [
                PROTO + twice + STOP,
                PROTO + mapping((text(BIAS), tensor())) + text(BIAS) + tensor() + b"s" + STOP,
                PROTO + call("collections.OrderedDict", ordered) + STOP,
            ]
        ),
    }


def _places() -> Defects:
    def files(values: Iterable[bytes]) -> Iterator[bytes]:
        return _in_turn(state({BIAS: value}) for value in values)

    giants = ([1 << 28], [1 << 40], [HUGE], [5], [1 << 15] * 2, [HUGE] * 8)
    negative = "has a negative offset, size or stride"
    beyond = r"that reach to number [\d,]+ of a storage of 4"
    unequal = r"has a tensor with \d+ sizes and \d+ strides|empty tensor with sizes beyond use"
    big = storage(num_elements=1000)
    views = [
        state({str(number): tensor(big, offset=number, size=[900]) for number in range(count)})
        for count in (2, 50)
    ]
    square = [tensor(big, offset=number, size=[30, 30], stride=[1, 1]) for number in range(9)]
    views.append(state({str(number): value for number, value in enumerate(square)}))
    shared = "bytes that view the same 4,000 bytes"
    return {
        ("views over what their storages have", UnsafeFileError, shared): (
            archive(content, {"0": bytes(4000)}) for content in views
        ),
        (
            "a giant of stride 0",
            UnsafeFileError,
            r"wants [\d,]+ elements for 'bert\.pooler\.dense\.bias'",
        ): files(tensor(size=size, stride=[0] * len(size)) for size in giants),
        ("a negative offset, size or stride", UnsafeFileError, negative): files(
            [
                tensor(offset=-1),
                tensor(offset=-HUGE),
                tensor(size=[-1]),
                tensor(size=[-2, -2], stride=[1, 1]),
                tensor(offset=1, size=[2], stride=[-1]),
            ]
        ),
        ("a tensor that reaches out of its storage", UnsafeFileError, beyond): files(
            [
                tensor(offset=1),
                tensor(size=[5]),
                tensor(size=[2], stride=[HUGE]),
                tensor(size=[2, 2], stride=[3, 1]),
                tensor(offset=(1 << 64) - 1, size=[1]),
                tensor(offset=5, size=[0]),
            ]
        ),
        ("sizes and strides that don't fit", UnsafeFileError, unequal): files(
            [
                tensor(size=[1], stride=[]),
                tensor(size=[], stride=[1]),
                tensor(size=[1] * 2000, stride=[1] * 2000),
                tensor(size=[0, HUGE], stride=[1, 1]),
                tensor(size=[0, 1 << 31, 1 << 31, 1 << 31], stride=[1] * 4),
            ]
        ),
    }


def _types() -> Defects:
    kinds = [
        "torch.ComplexFloatStorage",
        "torch.QInt8Storage",
        "torch.UntypedStorage",
        "torch.storage.UntypedStorage",
        "torch.storage.TypedStorage",
        "torch.cuda.FloatStorage",
        "torch.ObjectStorage",
        "torch.float32",
        "numpy.dtype",
        "torch._utils._rebuild_qtensor",
    ]
    twice = [
        {"a": tensor(), "b": tensor(storage(kind="torch.IntStorage"))},
        {"a": tensor(), "b": tensor(storage(num_elements=5))},
        {"a": tensor(storage(num_elements=HUGE)), "b": tensor()},
    ]
    return {
        (
            "elements of an unknown type",
            UnsafeFileError,
            "asks to call (torch|numpy)[\\w.]+, which no weights need",
        ): _in_turn(state({BIAS: tensor(storage(kind=kind))}) for kind in kinds),
        ("a storage that is none", UnsafeFileError, "asks for"): _in_turn(
            state({BIAS: tensor(value)})
            for value in (storage(num_elements=-1), storage().replace(b"storage", b"modules"))
        ),
        ("a storage of another form", CheckpointError, NO_TENSORS): _in_turn(
            state({BIAS: tensor(value)})
            for value in (
                storage(kind="collections.OrderedDict"),
                storage()[:-2] + group(text("1"), integer(0), integer(1)) + b"tQ",
                text("0") + b"Q",
                group() + b"Q",
                b"NQ",
                b"N",
                storage().replace(integer(4), text("4")),
            )
        ),
        ("a storage described twice", DamagedFileError, "differently"): _in_turn(map(state, twice)),
    }


def _storages() -> Defects:
    content = state({BIAS: tensor()})
    keys = ["1", "", "../0", "0/", "data.pkl", "\n", "a" * 100_000]
    return {
        (
            "a storage of another length",
            DamagedFileError,
            "should have 16 bytes in 'data/0', which has",
        ): (archive(content, {"0": bytes(size)}) for size in (0, 1, 12, 15, 17, 20, 1 << 20)),
        (
            "a storage said to be larger than the file",
            DamagedFileError,
            r"should have [\d,]+ bytes in 'data/0', which has 16",
        ): (
            archive(state({BIAS: tensor(storage(num_elements=count), size=[count])}))
            for count in (5, 1 << 28, 1 << 40, HUGE, (1 << 64) + 4)
        ),
        ("a storage that isn't there", DamagedFileError, "which isn't there"): (
            archive(state({BIAS: tensor(storage(key))})) for key in keys
        ),
    }


def _meanings() -> Defects:
    one = tensor()
    keys = (integer(1), b"N", b"\x88", group(), b"G" + bytes(8), one)
    no_tensors = (b"G" + bytes(8), b"N", text("b"), b"]", storage(), name("torch.FloatStorage"))
    values = [mapping((text("a\x1b[2J"), value)) for value in no_tensors]
    values.append(mapping((text("state_dict"), mapping((text(BIAS), one)))))
    values.append(mapping((text("epoch"), integer(3)), (text(BIAS), one)))
    no_dicts = [one, b"]", group(one), *no_tensors[1:3], *no_tensors[4:]]
    return {
        ("keys that aren't strings", CheckpointError, NO_TENSORS): _in_turn(
            PROTO + mapping((key, one)) + STOP for key in keys
        ),
        (
            "values that aren't tensors",
            CheckpointError,
            "holds (something other than|a dict of) tensors.* under ",
        ): _in_turn(PROTO + value + STOP for value in values),
        (
            "no dict at all",
            CheckpointError,
            "holds something other than tensors.*; expected a dict of tensors",
        ): _in_turn(PROTO + value + STOP for value in no_dicts),
        ("a whole module", UnsafeFileError, r"asks to call torch\.nn\.modules\.linear\.Linear"): (
            _saved(torch.nn.Linear(2, 2), _use_new_zipfile_serialization=new)
            for new in (True, False)
        ),
    }


def _archives() -> Defects:
    whole = state(_items())
    members = {"model/data.pkl": whole, "model/version": b"3"}
    members |= {f"model/data/{key}": data for key, data in _data().items()}
    bomb = {"model/data.pkl": state({BIAS: tensor()}), "model/data/0": bytes(200 << 20)}
    kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    one = pack({"model/data.pkl": whole, "model/data/0": bytes(99), "model/data/1": bytes(99)})
    return {
        ("compressed entries", UnsafeFileError, "compressed"): [
            *(pack(members, kind) for kind in kinds),
            pack(bomb, zipfile.ZIP_DEFLATED),
        ],
        ("two entries of one name", UnsafeFileError, "or two of one name"): [
            one.replace(b"model/data/1", b"model/data/0"),
            pack({**members, "model/data.pkk": b"x"}).replace(b"data.pkk", b"data.pkl"),
        ],
        ("entries that overlap", UnsafeFileError, "entries that are compressed or overlap"): (
            _overlapping(count) for count in (100, 5000)
        ),
        ("numbers of another byte order", CheckpointError, "has numbers in byte order"): (
            archive(whole, _data(), byteorder=value) for value in (b"big", b"", b"LITTLE", b"\x00")
        ),
        ("more bytes than the member needs", UnsafeFileError, "no weights need over"): (
            archive(whole, _data(), byteorder=bytes(size)) for size in (17, 1 << 20)
        ),
        (
            "an archive without one data.pkl",
            DamagedFileError,
            r"is a zip archive without one data\.pkl",
        ): [
            pack({"data.pkl": whole}),
            pack({"a/data.pkl": whole, "b/data.pkl": whole}),
            pack({"word/document.xml": b"<xml/>"}),
        ],
        ("a TorchScript program", UnsafeFileError, "is a TorchScript program"): [
            archive(whole, _data(), **{key: b"x"})
            for key in ("constants.pkl", "code/__torch__.py", "code/a/b.py.debug_pkl")
        ],
    }


def _overlapping(count: int) -> bytes:
    """Entries one in another: each holds the headers and bytes of all behind it."""
    data = bytearray(pack({f"model/{number}": b"x" for number in range(count)}))
    directory = data.index(b"PK\x01\x02")
    place = directory
    while data[place : place + 4] == b"PK\x01\x02":
        name_bytes = struct.unpack_from("<H", data, place + 28)[0]
        header = struct.unpack_from("<L", data, place + 42)[0]
        size = directory - header - 30 - name_bytes
        struct.pack_into("<2L", data, place + 20, size, size)
        place += 46 + name_bytes
    return bytes(data)


def _patched(*patches: tuple[bytes, int, str, int]) -> Iterator[bytes]:
    """Files in which a number was replaced, each given with its place and form."""
    for data, place, form, value in patches:
        changed = bytearray(data)
        struct.pack_into(form, changed, place, value)
        yield bytes(changed)


def _directories() -> Defects:
    whole = archive(state(_items()), _data())
    modern = _saved(dict(tensors()))
    end, modern_end = len(whole) - 22, len(modern) - 22
    directory = whole.index(b"PK\x01\x02")
    many = {f"model/data/{number}": b"" for number in range(10_001)}
    many_match = r"has [\d,]+ entries, or two of one name; expected at most 10,000"
    lost = "has an entry that isn't where it should be, "
    return {
        (
            "a directory that isn't where it should be",
            DamagedFileError,
            "isn't a whole zip archive",
        ): _patched(
            (whole, end + 12, "<L", 1 << 31),
            (modern, modern_end - 76 + 40, "<Q", HUGE),
            (whole, directory, "<H", 0),
            (whole, directory + 28, "<H", 0xFFFF),
        ),
        ("an entry that isn't where it should be", DamagedFileError, lost): _patched(
            (whole, end + 16, "<L", 0),
            (whole, directory + 42, "<L", 1 << 30),
            (whole, directory + 42, "<L", 7),
            (modern, modern_end - 76 + 48, "<Q", HUGE),
        ),
        (
            "an entry that isn't as torch writes it",
            UnsafeFileError,
            "compressed or (overlap|encrypted)",
        ): _patched(
            (whole, directory + 20, "<Q", (1 << 62) + (1 << 30)),
            (whole, directory + 24, "<L", 0xFFFFFFFF),
            (whole, directory + 8, "<H", 1),
        ),
        ("numbers of a directory that nobody needs", None, ""): _patched(
            (whole, end + 8, "<L", 0),
            (whole, end + 8, "<L", 0xFFFFFFFF),
            (whole, end + 20, "<H", 100),
            (whole, 30, "<H", 0),
        ),
        ("more entries than any model", UnsafeFileError, many_match): [
            pack(many),
            pack({"model/data.pkl": state({}), **many}),
        ],
    }


def _streams() -> Defects:
    content = state({BIAS: tensor()})
    data = bytes(16)
    counts = (5, 1 << 28, 1 << 40, (1 << 63) - 1)
    large = [
        stream(
            state({BIAS: tensor(storage(num_elements=count), size=[count])}), [("0", count, data)]
        )
        for count in counts
    ]
    return {
        (
            "a list of storages that lies",
            DamagedFileError,
            r"doesn't list the \d storages of its tensors",
        ): [
            stream(content, []),
            stream(content, keys=["0", "0"]),
            stream(content, keys=["0", "1"]),
            stream(state({})),
            stream(content, keys=[0]),
            stream(content, keys={"0": "0"}),
        ],
        ("a number of elements that lies", DamagedFileError, "should have 4 elements of storage"): [
            stream(content, [("0", count, data)])
            for count in (0, 3, 5, -4, 1 << 40, HUGE, -(1 << 63))
        ],
        ("a stream shorter than its storages", DamagedFileError, "should have .* elements"): large,
        ("bytes behind the end", DamagedFileError, "bytes behind its last storage"): [
            stream(content) + more for more in (b"\x00", b"PK\x05\x06", bytes(1 << 20))
        ],
        (
            "a stream of another protocol or magic number",
            DamagedFileError,
            "not of torch.save in its protocol 1001",
        ): [
            *(stream(content, protocol=value) for value in (0, 1000, 1002, "1001", [1001])),
            *(stream(content, magic=value) for value in (0, "torch", [1], None, -1)),
        ],
        (
            "a stream of a big-endian machine",
            CheckpointError,
            "wasn't written on a little-endian machine",
        ): [
            stream(content, system=value)
            for value in ({"little_endian": False}, {}, {"little_endian": 1}, [], "little")
        ],
    }


def _strangers() -> Defects:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:", format=tarfile.PAX_FORMAT) as file:
        file.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    tar = written.getvalue()
    return {
        ("the tar form", CheckpointError, "tar form of torch before"): [tar],
        ("another kind of file", DamagedFileError, "isn't what torch.save writes: it "): [
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 440473133\n",
            b"<!DOCTYPE html><html></html>",
            b'{"error": "Repository not found"}',
            b"\x89HDF\r\n\x1a\n" + bytes(100),
            b"Entry not found",
            bytes(1000),
            b"P",
        ],
        ("a safetensors file", DamagedFileError, "is a safetensors file; name"): [weights_file()],
        ("an empty file", DamagedFileError, "is empty"): [b""],
    }


def _alterations() -> Defects:
    """Some changes; `tests/fuzz` and the unit tests make others at random."""
    modern = _saved(dict(tensors()))
    old = _saved(dict(tensors()), _use_new_zipfile_serialization=False)
    start = modern.index(b"\x80\x02")
    return {
        (
            "an archive cut short",
            DamagedFileError,
            "isn't a whole zip archive|isn't what torch.save writes",
        ): (modern[:end] for end in (1, 100, len(modern) // 2, len(modern) - 1)),
        ("a stream cut short", DamagedFileError, "has (a|no) pickle|should have .* elements"): (
            old[:end] for end in (1, 100, len(old) // 2, len(old) - 1)
        ),
        (
            "a bit of the pickle in an archive",
            DamagedFileError,
            r"was altered in data\.pkl \(its CRC-32 differs\)",
        ): (_flip(modern, start + 7 * number, 1 << number % 8) for number in range(8)),
    }


def _flip(data: bytes, place: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= mask
    return bytes(changed)


def _accepted() -> Defects:
    """What is unusual and whole; `test_pytorch_file.py` holds more of it against torch."""
    whole = archive(state(_items()), _data())
    first = next(iter(tensors().values())).numpy().tobytes()
    modern = _saved(dict(tensors()))
    places = [modern.index(first) + 4 * number for number in range(4)]
    entries = {f"model/data/{key}": data for key, data in _data().items()}
    entries |= {"model/data.pkl": state(_items()), "model/version": b"3"}
    strange = ["../../canary", "/etc/passwd", "C:\\canary", "model/../canary", "canary", "model/"]
    parts = [
        b"r" + struct.pack("<I", (1 << 32) - 1),
        b"\x94" * 40_000,
        mapping((text("_metadata"), text("x" * 1_000_000))) + b"b",
    ]
    return {
        ("a bit of a tensor, whose checksum isn't looked at", None, ""): [
            whole,
            _streamed(state(_items())),
            *(_flip(modern, place, 1) for place in places),
        ],
        ("entries that would leave the folder, were they unpacked", None, ""): (
            pack({**entries, path: b"x"}) for path in strange
        ),
        ("waste within the limits", None, ""): (
            archive(state(_items())[:-1] + part + STOP, _data()) for part in parts
        ),
    }


PARTS = (
    *(_calls, _hidden_calls, _other_operations, _misused_names, _bombs, _broken_pickles, _places),
    *(_types, _storages, _meanings, _archives, _directories, _streams, _strangers),
    *(_alterations, _accepted),
)
