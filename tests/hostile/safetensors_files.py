"""Safetensors files that are broken or hostile, each in an otherwise whole folder."""

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, repeat
from typing import Any

import torch
from tests.hostile.case import Case, number_cases
from tests.hostile.whole import (
    WEIGHTS,
    WORDS,
    folder_with,
    header_and_data,
    join,
    tensors,
    weights_file,
)
from torch import Tensor

from bertkit.base.errors import BertkitError, CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import STRANGERS

DECODER = "cls.predictions.decoder.weight"
DECODER_BIAS = "cls.predictions.decoder.bias"
NORM = "bert.embeddings.LayerNorm.weight"
POOLER = "bert.pooler.dense.bias"

Header = dict[str, Any]


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (_sizes, _texts, _structures, _offsets, _shapes, _types, _meanings, _names, _bits):
        yield from part()


def _make(
    defect: str, contents: Iterable[bytes], error: type[BertkitError] | None, match: str
) -> Iterator[Case]:
    folders = (folder_with({WEIGHTS: content}) for content in contents)
    return number_cases(defect, folders, error, match)


def _edited(*edits: Callable[[Header], object], more: bytes = b"") -> Iterator[bytes]:
    """Files in whose header something was changed."""
    for edit in edits:
        header, data = header_and_data(tensors())
        header = copy.deepcopy(header)
        edit(header)
        yield join(header, data + more)


def _entries(key: str, values: Iterable[object]) -> Iterator[bytes]:
    """Files in whose header one field of one tensor was replaced."""
    for value in values:
        header, data = header_and_data(tensors())
        yield join({**header, POOLER: {**header[POOLER], key: value}}, data)


def _weights(*changes: Mapping[str, Tensor]) -> Iterator[bytes]:
    """Files with some tensors replaced or added."""
    for change in changes:
        yield weights_file({**tensors(), **change})


def _sizes() -> Iterator[Case]:
    whole = weights_file()
    header, data = header_and_data(tensors())
    text = json.dumps(header).encode()
    padded = [text.ljust((4 << 20) + more) for more in (1, 8, 1 << 20, 95 << 20)]
    yield from _make(
        "header larger than any model's",
        (join(each, data) for each in padded),
        UnsafeFileError,
        r"the header has [\d,]+ bytes, and none needs more than 4,194,304",
    )
    lengths = [len(whole) - 7, len(whole), 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63]
    yield from _make(
        "header length beyond the file",
        (length.to_bytes(8, "little") + whole[8:] for length in [*lengths, (1 << 64) - 1]),
        DamagedFileError,
        "isn't a whole safetensors file: it begins with",
    )
    yield from _make(
        "header length too small",
        (length.to_bytes(8, "little") + whole[8:] for length in (1, 2, 17, 100, len(text) - 1)),
        DamagedFileError,
        "the header of .* isn't JSON",
    )
    yield from _make("empty weights", [b""], DamagedFileError, "is empty; fetch it again")
    end = 8 + len(text)
    cuts = (1, 4, 7, 8, 9, 20, 100, end - 100, end - 1, end, end + 1, end + 4, end + 32, end + 33)
    yield from _make(
        "weights cut short",
        (whole[:cut] for cut in (*cuts, len(whole) // 2, -100, -32, -4, -1)),
        DamagedFileError,
        "isn't a whole safetensors file",
    )
    yield from _make(
        "bytes behind the weights",
        (whole + more for more in (b"\0", b"\0" * 4, whole, b"PK\x03\x04", b"\n")),
        DamagedFileError,
        "isn't a whole safetensors file: a tensor ends at byte",
    )
    for number, (start, meaning) in enumerate({**STRANGERS, b"\xff": "it begins with"}.items()):
        files = folder_with({WEIGHTS: start.ljust(64)})
        match = re.escape(meaning)
        yield Case("another kind of file as weights", number, files, DamagedFileError, match)


def _texts() -> Iterator[Case]:
    _, data = header_and_data(tensors())
    good = json.dumps(header_and_data(tensors())[0])
    texts = [
        b"",
        b" ",
        b"{",
        b"{]",
        b"{'a': 1}",
        b'{"a": 1,}',
        b"{} {}",
        b"{} // weights",
        b'{"a": 0x10}',
        b'{"a": 01}',
        b'{"a\n": 1}',
        b"\0" * 64,
        b"\xef\xbb\xbf" + good.encode(),
        good.encode("utf-16"),
        good.encode("utf-32"),
        b'{"\xff": 1}',
        b'{"\xed\xa0\x80": 1}',
        good.encode()[:-1],
        b'{"a": ' + b"1" * 5000 + b"}",
    ]
    yield from _make(
        "header not JSON",
        (join(text, data) for text in texts),
        DamagedFileError,
        "the header of .* isn't JSON",
    )
    deep = [
        b'{"__metadata__":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" * 4_000_000,
        b'{"a":' * 800_000,
    ]
    yield from _make(
        "header nested deep",
        (join(text, data) for text in deep),
        DamagedFileError,
        r"isn't JSON \((maximum recursion|it has over)",
    )
    many = [b"[" + b"1," * 2_000_000 + b"1]", b"{" + b"," * 4_000_000 + b"}"]
    many.append(b'{"a":[' + b"[]," * 1_300_000 + b"[]]}")
    yield from _make(
        "header of too many values",
        (join(text, data) for text in many),
        DamagedFileError,
        "values; at most 1,048,576",
    )
    yield from _make(
        "header not an object",
        (join(value, data) for value in (b"[]", b"1", b"null", b'"x"', b"true", b"1e9", b"[{}]")),
        DamagedFileError,
        "must be one JSON object",
    )
    entry = '"dtype":"F32","shape":[0],"data_offsets":[0,0]'
    twice = [
        f'{{"a":{{{entry}}},"a":{{{entry}}}}}',
        f'{{"a":{{{entry},"dtype":"F16"}}}}',
        f'{{"a":{{"shape":[1],{entry}}}}}',
        f'{{"a":{{{entry},"data_offsets":[0,4]}}}}',
        '{"__metadata__":{},"__metadata__":{}}',
        '{"__metadata__":{"format":"pt","format":"tf"}}',
        good[:-1] + f', "{WORDS}": {{{entry}}}}}',
        f'{{"a":{{{entry}}},"\\u0061":{{{entry}}}}}',
    ]
    yield from _make(
        "header with a key twice",
        (join(text.encode(), data) for text in twice),
        DamagedFileError,
        "the key '.*' appears twice",
    )


def _structures() -> Iterator[Case]:
    yield from _make(
        "tensor entry not as it must be",
        _edited(
            *(
                lambda header, value=value: header.update({POOLER: value})
                for value in (None, 1, "F32", [], {}, {"dtype": "F32"}, [1, 2, 3])
            ),
            lambda header: header[POOLER].pop("dtype"),
            lambda header: header[POOLER].pop("shape"),
            lambda header: header[POOLER].pop("data_offsets"),
            lambda header: header[POOLER].update({"stride": [1]}),
        ),
        DamagedFileError,
        "must have dtype, shape and data_offsets, and no more",
    )
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    for number, size in enumerate((20_001, 60_000)):
        text = json.dumps(dict(zip(map(str, range(size)), repeat(entry))), separators=(",", ":"))
        files = folder_with({WEIGHTS: join(text.encode(), b"")})
        yield Case("too many tensors", number, files, UnsafeFileError, r"tensors; at most 20,000")
    yield from _make(
        "very many empty tensors",
        _edited(lambda header: header.update({f"x{number}": entry for number in range(15_000)})),
        CheckpointError,
        "unknown .*; and 14992 more",
    )
    yield from _make(
        "metadata of any kind",
        _edited(
            *(
                lambda header, value=value: header.update({"__metadata__": value})
                for value in (None, 1, [], {"format": "tf"}, {"x": {"y": [1]}}, "\x1b[31m")
            )
        ),
        None,
        "",
    )


def _offsets() -> Iterator[Case]:
    header, _ = header_and_data(tensors())
    begin, end = header[POOLER]["data_offsets"]
    size = end - begin
    places = "a tensor ends at byte"
    shifted = [begin - size, begin - 4, begin + 4, begin + size, 0, begin - 1, begin + 1]
    yield from _make(
        "offsets that overlap or leave a gap",
        _entries("data_offsets", ([place, place + size] for place in shifted)),
        DamagedFileError,
        places,
    )
    outside = [1 << 20, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62]
    yield from _make(
        "offsets outside of the file",
        _entries("data_offsets", ([place, place + size] for place in outside)),
        DamagedFileError,
        places,
    )
    yield from _make(
        "offsets negative",
        _entries(
            "data_offsets", ([-place, size - place] for place in (1, 4, size, 1 << 31, 1 << 63))
        ),
        DamagedFileError,
        "expected begin and end",
    )
    yield from _make(
        "offsets reversed or of another length",
        _entries(
            "data_offsets",
            ([end, begin], [begin, begin], [begin, end + 1], [begin, end - 1], [0, 1 << 62]),
        ),
        DamagedFileError,
        r"has -?[\d,]+ bytes, and F32 of the shape \[8\] takes 32",
    )
    huge = ([1 << 63, (1 << 63) + 32], [1 << 64, 1 << 65], [10**4000, 10**4000 + 32])
    wrong = (None, 5, "0", [], [1], [1, 2, 3], [0.0, 32.0], [False, True], ["0", "32"], *huge)
    yield from _make(
        "offsets not two numbers",
        _entries("data_offsets", wrong),
        DamagedFileError,
        "expected begin and end",
    )
    yield from _make(
        "all tensors in the same bytes",
        (
            join(
                {f"t{number}": {**header[POOLER], "data_offsets": [0, 32]} for number in range(n)},
                bytes(32),
            )
            for n in (2, 100, 10_000)
        ),
        DamagedFileError,
        places,
    )


def _shapes() -> Iterator[Case]:
    shapes = ([], [7], [9], [8, 2], [1 << 24], [1 << 62], [2, 2, 2, 2], [4])
    yield from _make(
        "shape of other bytes",
        _entries("shape", shapes),
        DamagedFileError,
        r"bytes, and F32 of the shape \[.*\] takes",
    )
    products = ([1 << 32] * 2, [1 << 62, 4], [1 << 62, 1 << 62], [(1 << 63) - 1] * 8)
    yield from _make(
        "shape whose product overflows",
        _entries("shape", products),
        DamagedFileError,
        r"F32 of the shape .* takes",
    )
    digits = ([1 << 63], [1 << 64, 8], [10**600], [10**1000] * 4, [10**4000] * 8)
    wrong = (
        None,
        8,
        "8",
        [-8],
        [8.0],
        [True],
        ["8"],
        [[8]],
        {},
        [1] * 9,
        [8, *[1] * 1000],
        *digits,
    )
    yield from _make(
        "shape not sizes", _entries("shape", wrong), DamagedFileError, "expected sizes"
    )
    empty = {"dtype": "F32", "data_offsets": [0, 0]}
    sizes = ([0, 1 << 62], [(1 << 63) - 1, 0], [0], [0] * 8, [0, *[1 << 62] * 7])
    yield from _make(
        "no elements, and huge sizes",
        _edited(
            *(
                lambda header, shape=shape: header.update({NORM + "s": {**empty, "shape": shape}})
                for shape in sizes
            )
        ),
        CheckpointError,
        "unknown",
    )
    yield from _make(
        "copy of huge sizes and no elements",
        _edited(
            *(
                lambda header, shape=shape: header.update({DECODER: {**empty, "shape": shape}})
                for shape in sizes
            )
        ),
        CheckpointError,
        f"{DECODER} must equal {WORDS}, and doesn't",
    )
    weights = tensors()
    grown = {name: torch.ones(9, *weights[name].shape[1:]) for name in (POOLER, NORM)}
    yield from _make(
        "tensor of another shape",
        _weights(
            *({name: tensor} for name, tensor in grown.items()),
            {WORDS: weights[WORDS].t().contiguous()},
            {WORDS: weights[WORDS][:-1]},
            {WORDS: weights[WORDS].reshape(-1)},
            {POOLER: torch.tensor(1.0)},
            {POOLER: torch.ones(1, 8)},
            {POOLER: torch.ones(1)},
            {POOLER: torch.ones(0)},
        ),
        CheckpointError,
        r"is \[.*\] and must be \[",
    )


def _types() -> Iterator[Case]:
    unknown = (
        "F8_E4M3",
        "F4",
        "f32",
        "float32",
        "",
        "C64",
        "U64",
        5,
        None,
        ["F32"],
        {},
        "F" * 9999,
    )
    yield from _make(
        "unknown element type",
        _entries("dtype", unknown),
        DamagedFileError,
        "is of type .*; known are F64",
    )
    yield from _make(
        "element type of another size",
        _entries("dtype", ("F64", "F16", "BF16", "I64", "I16", "I8", "U8", "BOOL")),
        DamagedFileError,
        "bytes, and .* takes",
    )
    kinds = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    yield from _make(
        "weights of whole numbers",
        _weights(*({POOLER: torch.ones(8, dtype=kind)} for kind in kinds)),
        CheckpointError,
        "and must hold floating-point numbers",
    )
    floats = (torch.float16, torch.bfloat16, torch.float64)
    yield from _make(
        "weights of other floating-point types",
        (weights_file({name: t.to(kind) for name, t in tensors().items()}) for kind in floats),
        None,
        "",
    )
    odd = {"__metadata__": {"x": "y"}, **header_and_data(tensors())[0]}
    texts = [json.dumps(odd).encode() + b" " * more for more in range(1, 8)]
    yield from _make(
        "weights at odd addresses",
        (join(text, header_and_data(tensors())[1]) for text in texts),
        None,
        "",
    )


def _meanings() -> Iterator[Case]:
    weights = tensors()
    changed = [{POOLER: torch.full((8,), 1e300, dtype=torch.float64)}]  # too large for float32
    for value in (torch.nan, torch.inf, -torch.inf):
        for tensor, kind in ((WORDS, torch.float32), (NORM, torch.float16)):
            spoiled = weights[tensor].clone().to(kind)
            spoiled.reshape(-1)[-1] = value
            changed.append({tensor: spoiled})
    yield from _make(
        "weights that aren't finite", _weights(*changed), CheckpointError, "has NaN or infinity"
    )
    yield from _make(
        "missing tensors",
        (
            weights_file({their: weights[their] for their in weights if their != name})
            for name in list(weights)[:40:4]
        ),
        CheckpointError,
        "missing bert",
    )
    yield from _make(
        "no tensors at all",
        [join({}, b""), join({"__metadata__": {}}, b"")],
        CheckpointError,
        "no ",
    )
    equal = weights[WORDS]
    yield from _make(
        "unequal copies of tied weights",
        _weights(
            {DECODER: equal + 1e-3},
            {DECODER: equal[:-1]},
            {DECODER: equal.t().contiguous()},
            {DECODER: equal.half()},
            {DECODER: equal.to(torch.int32)},
            {DECODER: torch.full_like(equal, float("nan"))},
            {DECODER: torch.tensor(1.0)},
            {DECODER_BIAS: torch.ones(32)},
            {DECODER_BIAS: torch.ones(31)},
        ),
        CheckpointError,
        "must equal .*, and doesn't",
    )
    yield from _make(
        "equal copies of tied weights",
        _weights({DECODER: equal}, {DECODER_BIAS: weights["cls.predictions.bias"]}),
        None,
        "",
    )


def _names() -> Iterator[Case]:
    one = torch.ones(8)
    names = [
        "",
        ".",
        "bert",
        "bert.",
        "bert.embeddings.x",
        "bert.encoder.layer.2.output.dense.bias",
        "bert.encoder.layer.-1.output.dense.bias",
        "bert.encoder.layer.0x1.output.dense.bias",
        "bert.encoder.layer.01.output.dense.bias",
        "bert.encoder.layer.{layer}.output.dense.bias",
        "bert.encoder.layer.١.output.dense.bias",
        "bert.pooler.dense.bias ",
        "roberta.embeddings.word_embeddings.weight",
        "../../weights",
        "bert.embeddings.__class__",
        "bert.embeddings.\udcff",
    ]
    yield from _make(
        "unknown tensors", _weights(*({name: one} for name in names)), CheckpointError, "unknown "
    )
    yield from _make(
        "names that a terminal would obey",
        _weights({"bert.embeddings.\x1b[2Jx": one}, {"bert.embeddings.\nx": one}, {"\x9b31m": one}),
        CheckpointError,
        "unknown ",
    )
    yield from _make(
        "names of a megabyte",
        _weights({"x" * 1_000_000: one}, {"bert.embeddings." + "x" * 4_000_000: one}),
        CheckpointError,
        "unknown ",
    )
    old = {NORM.replace("weight", "gamma"): torch.ones(8), POOLER.removeprefix("bert."): one}
    yield from _make(
        "one tensor under two names",
        _weights(*({name: tensor} for name, tensor in old.items())),
        CheckpointError,
        "two tensors mean",
    )


def _bits() -> Iterator[Case]:
    whole = bytearray(weights_file())
    _, data = header_and_data(tensors())
    start = len(whole) - len(data)
    places = zip(count(), range(0, len(data) - 4, len(data) // 19 // 4 * 4))
    for number, place in places:
        flipped = bytearray(whole)
        flipped[start + place] ^= 1 << number % 8  # the lowest byte of a number: it stays finite
        files = folder_with({WEIGHTS: bytes(flipped)})
        yield Case("a bit flipped in weights without checksum", number, files, None, "")
