"""`pytorch_model.bin` that is broken or hostile, each in an otherwise whole folder."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import cycle

import torch
from tests.hostile.case import Case, number_cases
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

from bertkit.base.errors import BertkitError, CheckpointError, DamagedFileError, UnsafeFileError

FILE = "pytorch_model.bin"
BIAS = "bert.pooler.dense.bias"
HUGE = 1 << 62


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (
        _calls,
        _hidden_calls,
        _other_operations,
        _misused_names,
        _bombs,
        _broken_pickles,
        _places,
        _types,
        _storages,
        _meanings,
        _archives,
        _directories,
        _streams,
        _strangers,
        _alterations,
        _accepted,
    ):
        yield from part()


def _make(
    defect: str, contents: Iterable[bytes], error: type[BertkitError] | None, match: str = ""
) -> Iterator[Case]:
    folders = (folder_with({WEIGHTS: None, FILE: content}) for content in contents)
    return number_cases(f"PyTorch: {defect}", folders, error, rf"/{FILE} .*({match})")


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


def _calls() -> Iterator[Case]:
    wanted = [
        ("os.system", "touch canary"),
        ("posix.system", "touch canary"),
        ("nt.system", "touch canary"),
        ("subprocess.Popen", "touch canary"),
        ("subprocess.check_output", "touch canary"),
        ("builtins.eval", "open('canary', 'w')"),
        ("builtins.exec", "open('canary', 'w')"),
        ("__builtin__.eval", "open('canary', 'w')"),
        ("builtins.open", "canary"),
        ("builtins.__import__", "antigravity"),
        ("importlib.import_module", "antigravity"),
        ("pickle.loads", "cos\nsystem\n"),
        ("torch.load", "pytorch_model.bin"),
        ("torch.hub.load", "somebody/something"),
        ("torch.jit.load", "pytorch_model.bin"),
        ("torch._C._jit_pass_inline", "x"),
        ("runpy.run_path", "canary.py"),
        ("shutil.rmtree", "canary"),
        ("webbrowser.open", "http://127.0.0.1/"),
        ("pty.spawn", "touch canary"),
    ]
    plain = [PROTO + call(dotted, text(argument)) + STOP for dotted, argument in wanted]
    yield from _make(
        "a call", map(archive, plain), UnsafeFileError, r"asks to call [\w.]+, .*not called"
    )
    yield from _make(
        "a call in the older form", map(stream, plain), UnsafeFileError, "asks to call"
    )
    stacked = [
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in parts)
        + b"\x93"
        + group(text("touch canary"))
        + b"R."
        for parts in [dotted.rsplit(".", 1) for dotted, _ in wanted[:6]]
        + [
            ("torch", "_utils._rebuild_tensor_v2.__globals__"),
            ("collections", "OrderedDict.__init__"),
            ("collections.OrderedDict", "__reduce__"),
            ("torch._utils", "os.system"),
        ]
    ]
    yield from _make("a call by stacked names", _in_turn(stacked), UnsafeFileError, "asks to call")
    attribute = call("builtins.getattr", name("os.path"), text("system"))
    chains = [
        PROTO + call("builtins.getattr", text(""), text("join")) + STOP,
        PROTO + attribute + group(text("touch canary")) + b"R" + STOP,
        PROTO + call("operator.attrgetter", text("__class__")) + group(text("")) + b"R" + STOP,
        PROTO + call("functools.partial", name("os.system"), text("touch canary")) + b")R" + STOP,
        PROTO + call("builtins.map", name("os.system"), b"]") + STOP,
    ]
    yield from _make("a chain of attributes", _in_turn(chains), UnsafeFileError, "asks to call")


def _hidden_calls() -> Iterator[Case]:
    evil = call("os.system", text("touch canary"))
    whole = mapping(*((text(key), value) for key, value in _items().items()))
    programs = [
        whole + b"(" + text("zzz") + evil + b"u",
        whole + evil + b"0",
        whole + mapping((text("_metadata"), evil)) + b"b",
        evil + b"0" + whole,
        whole + evil + b"b",
        b"(" + whole + evil + b"t",
        whole + b"q\x00" + evil + b"h\x00",
        whole + evil + text("value") + b"s",
    ]
    contents = [PROTO + program + STOP for program in programs]
    yield from _make(
        "a call behind a whole model",
        [write(content) for content in contents for write in (_whole_archive, _streamed)],
        UnsafeFileError,
        r"asks to call os\.system",
    )
    places = [tensor(evil), tensor(storage().replace(text("cpu"), evil)), evil + b"Q"]
    yield from _make(
        "a call in place of a storage",
        _in_turn(state({BIAS: value}) for value in places),
        UnsafeFileError,
        r"asks to call os\.system",
    )
    pickle = PROTO + evil + STOP
    start = stream(b"", [])
    first, second, third = (start.index(PROTO, place) for place in (0, 2, 18))
    yield from _make(
        "a call in another pickle of the stream",
        [
            pickle,
            start[:second] + pickle,
            start[:third] + pickle,
            stream(state({}) + pickle, []),
            start[:first] + pickle + start,
        ],
        UnsafeFileError,
        r"asks to call os\.system",
    )


def _whole_archive(content: bytes) -> bytes:
    return archive(content, _data())


def _other_operations() -> Iterator[Case]:
    programs = [
        b"(ios\nsystem\n",  # INST
        b"(" + text("touch canary") + b"o",  # OBJ
        b"}" + group() + b"\x81",  # NEWOBJ
        b"}" + group() + b"}\x92",  # NEWOBJ_EX
        b"\x82\x01",  # EXT1
        b"\x83\x01\x00",  # EXT2
        b"\x84\x01\x00\x00\x00",  # EXT4
        b"P1\n",  # PERSID
        b"\x97",  # NEXT_BUFFER
        b"\x98",  # READONLY_BUFFER
        b"\x96" + struct.pack("<Q", HUGE),  # BYTEARRAY8
        b"\x8e" + struct.pack("<Q", HUGE),  # BINBYTES8
        b"\x8d" + struct.pack("<Q", HUGE),  # BINUNICODE8
        b"B" + struct.pack("<I", 1 << 31),  # BINBYTES
        b"\x8b" + struct.pack("<i", 1 << 30),  # LONG4
        b"\x8f",  # EMPTY_SET
        b"I1\n",  # INT
        b"L1L\n",  # LONG
        b"V1\n",  # UNICODE
        b"\xff",
    ]
    yield from _make(
        "an operation that no weights need",
        (archive(PROTO + program + STOP) for program in programs),
        UnsafeFileError,
        r"has the pickle operation b['\"].+['\"] at byte [\d,]+, which no",
    )


def _misused_names() -> Iterator[Case]:
    rebuild = "torch._utils._rebuild_tensor_v2"
    values = [
        call("torch.FloatStorage", integer(1 << 40)),
        call("collections.OrderedDict", integer(1 << 40)),
        call("collections.OrderedDict", text("ab")),
        call("collections.OrderedDict", b"](Ne"),
        call("collections.OrderedDict", b"]", b"]"),
        call(rebuild),
        call(rebuild, text("0")),
        call(rebuild, storage(), text("0"), group(), group(), b"\x89", b"}"),
        call(rebuild, storage(), integer(0), b"]", b"]", b"\x89", b"}"),
        call(rebuild, storage(), integer(0), group(text("4")), group(text("1")), b"\x89", b"}"),
        call(rebuild, storage(), integer(0), group(), group(), b"\x89", b"N"),
        call("torch._utils._rebuild_parameter", text("a"), b"\x88", b"}"),
        name(rebuild) + b"]R",
        b"})R",
        name(rebuild) + b"}b",
        b"}" + text("a") + b"b",
        name("torch.FloatStorage") + text("a") + b"Ns",
        b"]" + text("a") + b"Ns",
        b"}Na",
    ]
    yield from _make(
        "an allowed name used for something else",
        (archive(state({BIAS: value})) for value in values),
        CheckpointError,
        "holds something other than tensors",
    )


def _bombs() -> Iterator[Case]:
    opened = b"}(" + text("a")
    yield from _make(
        "a bomb of memorized values",
        _in_turn(
            [PROTO + b"N" + b"\x94" * 200_000 + STOP, PROTO + b"]" + b"\x94" * 200_000 + STOP]
        ),
        CheckpointError,
        "holds something other than tensors",
    )
    yield from _make(
        "deep nesting",
        _in_turn(
            [
                PROTO + b"(" * 101 + STOP,
                PROTO + b"(" * 100_000 + STOP,
                PROTO + b"](" * 101 + STOP,
                PROTO + opened * 101 + STOP,
                PROTO + b"](" * 100 + b"(" + b"e" * 100 + STOP,
                PROTO + opened * 30_000 + b"N" + b"u" * 30_000 + STOP,
                *(PROTO + start + b"\x85" * 249_000 + STOP for start in (b"N", b"]", b"}")),
                PROTO + b"}N" + b"\x85" * 240_000 + b"Ns" + STOP,  # the key of a dict, to be hashed
            ]
        ),
        CheckpointError,
        "holds something other than tensors",
    )
    yield from _make(
        "too many operations",
        _in_turn([PROTO + b"N" + b"\x85" * 250_001, PROTO + b"}" + b"}b" * 200_000]),
        UnsafeFileError,
        "a pickle of over 250,000 operations",
    )
    yield from _make(
        "too many values under way",
        _in_turn(
            [
                PROTO + program + STOP
                for program in (b"N" * 10_001, b"}" * 100_000, b"Nq\x00" + b"h\x00" * 10_000)
            ]
        ),
        CheckpointError,
        "holds something other than tensors",
    )
    doubled = b")" + b"".join(b"q%ch%c\x86" % (index, index) for index in range(200))
    yield from _make(
        "references that double",
        [
            *_in_turn([PROTO + doubled + STOP, state({"a": doubled})]),
            *_in_turn([PROTO + mapping((doubled, b"N")) + STOP]),
        ],
        CheckpointError,
        "holds something other than tensors",
    )
    yield from _make(
        "long integers",
        _in_turn([PROTO + b"\x8a" + bytes([size]) + b"\x7f" * size for size in (17, 100, 255)]),
        UnsafeFileError,
        "has an integer of over 128 bits",
    )
    same = [text(f"t{number}") + b"h\x00" for number in range(20_000)]
    groups = (
        b"(" + b"".join(same[start : start + 4000]) + b"u" for start in range(0, 20_000, 4000)
    )
    yield from _make(
        "too many tensors",
        _in_turn([state({"a": tensor() + b"q\x00"})[:-1] + b"".join(groups) + STOP]),
        UnsafeFileError,
        "has 20,001 tensors; no model needs over 20,000",
    )


def _broken_pickles() -> Iterator[Case]:
    programs = [
        b"",
        b"N",
        b"h\x00" + STOP,
        b"j\xff\xff\xff\x7f" + STOP,
        b"NN\x93" + STOP,
        b"cos\nsystem",
        b"X" + struct.pack("<I", (1 << 32) - 1) + b"a" + STOP,
        b"T" + struct.pack("<I", 1 << 31) + b"a" + STOP,
        b"T" + struct.pack("<I", 1 << 30) + b"a" + STOP,
        b"X\x01\x00\x00\x00\xff" + STOP,
    ]
    yield from _make(
        "a pickle that isn't whole",
        (archive(PROTO + program) for program in programs),
        DamagedFileError,
        "has a pickle",
    )
    without = [
        STOP,
        b"(" + STOP,
        b"t" + STOP,
        b"}(" + text("a") + b"u" + STOP,
        b"U\x01\xff" + STOP,
        b"\x95" + struct.pack("<Q", HUGE) + b"N" + STOP,
        b"Q" + STOP,
        b"R" + STOP,
    ]
    yield from _make(
        "a pickle that takes what isn't there",
        (archive(PROTO + program) for program in without),
        CheckpointError,
        "holds something other than tensors",
    )
    yield from _make(
        "a pickle of another protocol",
        map(archive, (b"", b"N.", b"\x80\x00N.", b"\x80\x01N.", b"\x80\x05N.", b"\x80\xffN.")),
        DamagedFileError,
        "has no pickle of protocol 2 to 4",
    )
    twice = mapping((text(BIAS), tensor()), (text(BIAS), tensor()))
    pair = b"](" + text("a\x1b[2J") + tensor() + b"e"
    ordered = b"](" + pair + pair + b"e"
    yield from _make(
        "a key twice in a dict",
        _in_turn(
            [
                PROTO + twice + STOP,
                PROTO + mapping((text(BIAS), tensor())) + text(BIAS) + tensor() + b"s" + STOP,
                PROTO + call("collections.OrderedDict", ordered) + STOP,
            ]
        ),
        DamagedFileError,
        r"has the key '[\w.\\\[]+' twice",
    )


def _places() -> Iterator[Case]:
    kinds: dict[str, tuple[str, list[bytes]]] = {
        "a giant of stride 0": (
            r"wants [\d,]+ elements for 'bert\.pooler\.dense\.bias'",
            [
                tensor(size=size, stride=[0] * len(size))
                for size in (
                    [1 << 28],
                    [1 << 30],
                    [1 << 40],
                    [HUGE],
                    [5],
                    [1 << 15] * 2,
                    [HUGE] * 8,
                )
            ],
        ),
        "a negative offset, size or stride": (
            "has a negative offset, size or stride",
            [
                tensor(offset=-1),
                tensor(offset=-HUGE),
                tensor(offset=3, stride=[-1]),
                tensor(size=[-1]),
                tensor(size=[-2, -2], stride=[1, 1]),
                tensor(size=[-HUGE]),
                tensor(offset=1, size=[2], stride=[-1]),
            ],
        ),
        "a tensor that reaches out of its storage": (
            r"that reach to number [\d,]+ of a storage of 4",
            [
                tensor(offset=1),
                tensor(size=[5]),
                tensor(size=[2], stride=[4]),
                tensor(size=[2, 2], stride=[3, 1]),
                tensor(size=[2], stride=[HUGE]),
                tensor(offset=HUGE, size=[1]),
                tensor(offset=(1 << 64) - 1, size=[1]),
                tensor(offset=5, size=[0]),
            ],
        ),
        "sizes and strides that don't fit": (
            r"has a tensor with \d+ sizes and \d+ strides|empty tensor with sizes beyond use",
            [
                tensor(size=[1], stride=[]),
                tensor(size=[], stride=[1]),
                tensor(size=[1] * 9, stride=[1] * 9),
                tensor(size=[1] * 2000, stride=[1] * 2000),
                tensor(size=[0, HUGE], stride=[1, 1]),
                tensor(size=[0, 1 << 31, 1 << 31, 1 << 31], stride=[1] * 4),
            ],
        ),
    }
    for defect, (match, values) in kinds.items():
        pickles = (state({BIAS: value}) for value in values)
        yield from _make(defect, _in_turn(pickles), UnsafeFileError, match)
    big = storage(num_elements=1000)
    shared = [
        state({str(number): tensor(big, offset=number, size=[900]) for number in range(count)})
        for count in (2, 10, 50)
    ]
    square = [tensor(big, offset=number, size=[30, 30], stride=[1, 1]) for number in range(9)]
    shared.append(state({str(number): value for number, value in enumerate(square)}))
    yield from _make(
        "views over what their storages have",
        (archive(content, {"0": bytes(4000)}) for content in shared),
        UnsafeFileError,
        "bytes that view the same 4,000 bytes",
    )


def _types() -> Iterator[Case]:
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
    yield from _make(
        "elements of an unknown type",
        _in_turn(state({BIAS: tensor(storage(kind=kind))}) for kind in kinds),
        UnsafeFileError,
        "asks to call (torch|numpy)[\\w.]+, which no weights need",
    )
    yield from _make(
        "a storage that is none",
        _in_turn(
            state({BIAS: tensor(value)})
            for value in (storage(num_elements=-1), storage().replace(b"storage", b"modules"))
        ),
        UnsafeFileError,
        "asks for",
    )
    yield from _make(
        "a storage of another form",
        _in_turn(
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
        CheckpointError,
        "holds something other than tensors",
    )
    twice = [
        {"a": tensor(), "b": tensor(storage(kind="torch.IntStorage"))},
        {"a": tensor(), "b": tensor(storage(num_elements=5))},
        {"a": tensor(storage(num_elements=HUGE)), "b": tensor()},
    ]
    yield from _make(
        "a storage described twice", _in_turn(map(state, twice)), DamagedFileError, "differently"
    )


def _storages() -> Iterator[Case]:
    content = state({BIAS: tensor()})
    yield from _make(
        "a storage of another length",
        (archive(content, {"0": bytes(size)}) for size in (0, 1, 12, 15, 17, 20, 1 << 20)),
        DamagedFileError,
        "should have 16 bytes in 'data/0', which has",
    )
    yield from _make(
        "a storage said to be larger than the file",
        (
            archive(state({BIAS: tensor(storage(num_elements=count), size=[count])}))
            for count in (5, 1 << 28, 1 << 40, HUGE, (1 << 64) + 4)
        ),
        DamagedFileError,
        r"should have [\d,]+ bytes in 'data/0', which has 16",
    )
    keys = ["1", "", "../0", "0/", "data.pkl", "\n", "a" * 100_000]
    yield from _make(
        "a storage that isn't there",
        (archive(state({BIAS: tensor(storage(key))})) for key in keys),
        DamagedFileError,
        "which isn't there",
    )


def _meanings() -> Iterator[Case]:
    one = tensor()
    values: dict[str, tuple[str, list[bytes]]] = {
        "keys that aren't strings": (
            "holds something other than tensors",
            [
                mapping((key, one))
                for key in (integer(1), b"N", b"\x88", group(), b"G" + bytes(8), one)
            ],
        ),
        "values that aren't tensors": (
            "holds (something other than|a dict of) tensors.* under ",
            [
                mapping((text("state_dict"), mapping((text(BIAS), one)))),
                mapping((text("epoch"), integer(3)), (text(BIAS), one)),
                mapping((text("rate"), b"G" + bytes(8))),
                mapping((text("a"), b"N")),
                mapping((text("a"), text("b"))),
                mapping((text("a"), b"]")),
                mapping((text("a\x1b[2J"), storage())),
                mapping((text("a"), name("torch.FloatStorage"))),
            ],
        ),
        "no dict at all": (
            "holds something other than tensors.*; expected a dict of tensors",
            [one, storage(), b"]", group(one), b"N", text("weights"), name("torch.FloatStorage")],
        ),
    }
    for defect, (match, contents) in values.items():
        pickles = (PROTO + content + STOP for content in contents)
        yield from _make(defect, _in_turn(pickles), CheckpointError, match)
    yield from _make(
        "a whole module",
        (
            _saved(torch.nn.Linear(2, 2), _use_new_zipfile_serialization=new)
            for new in (True, False)
        ),
        UnsafeFileError,
        r"asks to call torch\.nn\.modules\.linear\.Linear",
    )


def _archives() -> Iterator[Case]:
    whole = state(_items())
    members = {"model/data.pkl": whole, "model/version": b"3"}
    members |= {f"model/data/{key}": data for key, data in _data().items()}
    bomb = {"model/data.pkl": state({BIAS: tensor()}), "model/data/0": bytes(200 << 20)}
    kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    yield from _make(
        "compressed entries",
        [*(pack(members, kind) for kind in kinds), pack(bomb, zipfile.ZIP_DEFLATED)],
        UnsafeFileError,
        "compressed",
    )
    one = pack({"model/data.pkl": whole, "model/data/0": bytes(99), "model/data/1": bytes(99)})
    yield from _make(
        "two entries of one name",
        [
            one.replace(b"model/data/1", b"model/data/0"),
            pack({**members, "model/data.pkk": b"x"}).replace(b"data.pkk", b"data.pkl"),
        ],
        UnsafeFileError,
        "or two of one name",
    )
    yield from _make(
        "entries that overlap",
        (_overlapping(count) for count in (100, 5000)),
        UnsafeFileError,
        "entries that are compressed or overlap",
    )
    yield from _make(
        "numbers of another byte order",
        (archive(whole, _data(), byteorder=value) for value in (b"big", b"", b"LITTLE", b"\x00")),
        CheckpointError,
        "has numbers in byte order",
    )
    yield from _make(
        "more bytes than the member needs",
        (archive(whole, _data(), byteorder=bytes(size)) for size in (17, 1 << 20)),
        UnsafeFileError,
        "no weights need over",
    )
    yield from _make(
        "an archive without one data.pkl",
        [
            pack({"data.pkl": whole}),
            pack({"a/b/data.pkl": whole}),
            pack({"a/data.pkl": whole, "b/data.pkl": whole}),
            pack({"model/data.PKL": whole}),
            pack({"word/document.xml": b"<xml/>"}),
        ],
        DamagedFileError,
        r"is a zip archive without one data\.pkl",
    )
    yield from _make(
        "a TorchScript program",
        [
            archive(whole, _data(), **{key: b"x"})
            for key in ("constants.pkl", "code/__torch__.py", "code/a/b.py.debug_pkl")
        ],
        UnsafeFileError,
        "is a TorchScript program",
    )


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


def _directories() -> Iterator[Case]:
    whole = archive(state(_items()), _data())
    modern = _saved(dict(tensors()))
    end, modern_end = len(whole) - 22, len(modern) - 22
    directory = whole.index(b"PK\x01\x02")
    kinds: list[tuple[str, type[BertkitError] | None, str, list[tuple[bytes, int, str, int]]]] = [
        (
            "a directory that isn't where it should be",
            DamagedFileError,
            "isn't a whole zip archive",
            [
                (whole, end + 12, "<L", 1 << 31),
                (modern, modern_end - 76 + 40, "<Q", HUGE),
                (whole, directory, "<H", 0),
                (whole, directory + 28, "<H", 0xFFFF),
            ],
        ),
        (
            "an entry that isn't where it should be",
            DamagedFileError,
            "has an entry that isn't where it should be, ",
            [
                (whole, end + 16, "<L", 0),
                (whole, directory + 42, "<L", 1 << 30),
                (whole, directory + 42, "<L", 7),
                (modern, modern_end - 76 + 48, "<Q", HUGE),
            ],
        ),
        (
            "an entry that isn't as torch writes it",
            UnsafeFileError,
            "compressed or (overlap|encrypted)",
            [
                (whole, directory + 20, "<Q", (1 << 62) + (1 << 30)),
                (whole, directory + 24, "<L", 0xFFFFFFFF),
                (whole, directory + 8, "<H", 1),
            ],
        ),
        (
            "numbers of a directory that nobody needs",
            None,
            "",
            [
                (whole, end + 8, "<L", 0),
                (whole, end + 8, "<L", 0xFFFFFFFF),
                (whole, end + 20, "<H", 100),
                (whole, 30, "<H", 0),
            ],
        ),
    ]
    for defect, error, match, patches in kinds:
        contents = []
        for data, place, form, value in patches:
            changed = bytearray(data)
            struct.pack_into(form, changed, place, value)
            contents.append(bytes(changed))
        yield from _make(defect, contents, error, match)
    many = {f"model/data/{number}": b"" for number in range(10_001)}
    yield from _make(
        "more entries than any model",
        [pack(many), pack({"model/data.pkl": state({}), **many})],
        UnsafeFileError,
        r"has [\d,]+ entries, or two of one name; expected at most 10,000",
    )


def _streams() -> Iterator[Case]:
    content = state({BIAS: tensor()})
    data = bytes(16)
    yield from _make(
        "a list of storages that lies",
        [
            stream(content, []),
            stream(content, keys=["0", "0"]),
            stream(content, keys=["1"]),
            stream(content, keys=["0", "1"]),
            stream(state({})),
            stream(content, keys="0"),
            stream(content, keys=[0]),
            stream(content, keys={"0": "0"}),
            stream(content, keys=[["0"]]),
        ],
        DamagedFileError,
        r"doesn't list the \d storages of its tensors",
    )
    yield from _make(
        "a number of elements that lies",
        [
            stream(content, [("0", count, data)])
            for count in (0, 3, 5, -4, 1 << 40, HUGE, -(1 << 63))
        ],
        DamagedFileError,
        "should have 4 elements of storage '0'",
    )
    counts = (5, 1 << 28, 1 << 40, (1 << 63) - 1)
    large = [
        stream(
            state({BIAS: tensor(storage(num_elements=count), size=[count])}), [("0", count, data)]
        )
        for count in counts
    ]
    yield from _make(
        "a stream shorter than its storages", large, DamagedFileError, "should have .* elements"
    )
    yield from _make(
        "bytes behind the end",
        [stream(content) + more for more in (b"\x00", b"PK\x05\x06", bytes(1 << 20))],
        DamagedFileError,
        "bytes behind its last storage",
    )
    yield from _make(
        "a stream of another protocol or magic number",
        [
            *(stream(content, protocol=value) for value in (0, 1000, 1002, "1001", [1001])),
            *(stream(content, magic=value) for value in (0, "torch", [1], None, -1)),
        ],
        DamagedFileError,
        "not of torch.save in its protocol 1001",
    )
    yield from _make(
        "a stream of a big-endian machine",
        [
            stream(content, system=value)
            for value in ({"little_endian": False}, {}, {"little_endian": 1}, [], "little")
        ],
        CheckpointError,
        "wasn't written on a little-endian machine",
    )


def _strangers() -> Iterator[Case]:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:", format=tarfile.PAX_FORMAT) as file:
        file.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    tar = written.getvalue()
    yield from _make("the tar form", [tar], CheckpointError, "tar form of torch before")
    yield from _make(
        "another kind of file",
        [
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 440473133\n",
            b"<!DOCTYPE html><html></html>",
            b"<html>404</html>",
            b'{"error": "Repository not found"}',
            b"\x89HDF\r\n\x1a\n" + bytes(100),
            b"\x1f\x8b\x08" + bytes(100),
            b"Entry not found",
            bytes(1000),
            b"\xff" * 1000,
            b"P",
        ],
        DamagedFileError,
        "isn't what torch.save writes: it ",
    )
    yield from _make(
        "a safetensors file",
        [weights_file()],
        DamagedFileError,
        "is a safetensors file; name it model.safetensors",
    )
    yield from _make("an empty file", [b""], DamagedFileError, "is empty")


def _alterations() -> Iterator[Case]:
    """Some changes; `tests/fuzz` and the unit tests make others at random."""
    modern = _saved(dict(tensors()))
    old = _saved(dict(tensors()), _use_new_zipfile_serialization=False)
    yield from _make(
        "an archive cut short",
        (modern[:end] for end in (1, 100, len(modern) // 2, len(modern) - 1)),
        DamagedFileError,
        "isn't a whole zip archive|isn't what torch.save writes",
    )
    yield from _make(
        "a stream cut short",
        (old[:end] for end in (1, 100, len(old) // 2, len(old) - 1)),
        DamagedFileError,
        "has (a|no) pickle|should have .* elements",
    )
    start = modern.index(b"\x80\x02")
    yield from _make(
        "a bit of the pickle in an archive",
        (_flip(modern, start + 7 * number, 1 << number % 8) for number in range(8)),
        DamagedFileError,
        r"was altered in data\.pkl \(its CRC-32 differs\)",
    )


def _flip(data: bytes, place: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= mask
    return bytes(changed)


def _accepted() -> Iterator[Case]:
    """What is unusual and whole; `test_pytorch_file.py` holds more of it against torch."""
    whole = archive(state(_items()), _data())
    first = next(iter(tensors().values())).numpy().tobytes()
    modern = _saved(dict(tensors()))
    places = [modern.index(first) + 4 * number for number in range(4)]
    yield from _make(
        "a bit of a tensor, whose checksum isn't looked at",
        [whole, _streamed(state(_items())), *(_flip(modern, place, 1) for place in places)],
        None,
    )
    entries = {f"model/data/{key}": data for key, data in _data().items()}
    entries |= {"model/data.pkl": state(_items()), "model/version": b"3"}
    strange = ["../../canary", "/etc/passwd", "C:\\canary", "model/../canary", "canary", "model/"]
    yield from _make(
        "entries that would leave the folder, were they unpacked",
        (pack({**entries, path: b"x"}) for path in strange),
        None,
    )
    parts = [
        b"r" + struct.pack("<I", (1 << 32) - 1),
        b"\x94" * 40_000,
        mapping((text("_metadata"), text("x" * 1_000_000))) + b"b",
    ]
    yield from _make(
        "waste within the limits",
        (archive(state(_items())[:-1] + part + STOP, _data()) for part in parts),
        None,
    )
