"""Safetensors files that are broken or hostile, each in an otherwise whole folder."""

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from tests.hostile.case import Case, Defects, make_cases
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

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import STRANGERS

DECODER = "cls.predictions.decoder.weight"
DECODER_BIAS = "cls.predictions.decoder.bias"
NORM = "bert.embeddings.LayerNorm.weight"
POOLER = "bert.pooler.dense.bias"

Header = dict[str, Any]


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (_sizes, _texts, _structures, _offsets, _shapes, _types, _meanings, _names, _bits):
        yield from make_cases(part(), lambda content: folder_with({WEIGHTS: content}))


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


def _sizes() -> Defects:
    whole = weights_file()
    header, data = header_and_data(tensors())
    text = json.dumps(header).encode()
    padded = [text.ljust((4 << 20) + more) for more in (1, 8, 1 << 20, 95 << 20)]
    lengths = [len(whole) - 7, len(whole), 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63]
    end = 8 + len(text)
    cuts = (1, 4, 7, 8, 9, 20, 100, end - 100, end - 1, end, end + 1, end + 4, end + 32, end + 33)
    strangers = {**STRANGERS, b"\xff": "it begins with"}
    return {
        (
            "header larger than any model's",
            UnsafeFileError,
            r"the header has [\d,]+ bytes, and none needs more than 4,194,304",
        ): (join(each, data) for each in padded),
        (
            "header length beyond the file",
            DamagedFileError,
            "isn't a whole safetensors file: it begins with",
        ): (length.to_bytes(8, "little") + whole[8:] for length in [*lengths, (1 << 64) - 1]),
        ("header length too small", DamagedFileError, "the header of .* isn't JSON"): (
            length.to_bytes(8, "little") + whole[8:] for length in (1, 2, 17, 100, len(text) - 1)
        ),
        ("empty weights", DamagedFileError, "is empty; fetch it again"): [b""],
        ("weights cut short", DamagedFileError, "isn't a whole safetensors file"): (
            whole[:cut] for cut in (*cuts, len(whole) // 2, -100, -32, -4, -1)
        ),
        (
            "bytes behind the weights",
            DamagedFileError,
            "isn't a whole safetensors file: a tensor ends at byte",
        ): (whole + more for more in (b"\0", b"\0" * 4, whole, b"PK\x03\x04", b"\n")),
        (
            "another kind of file as weights",
            DamagedFileError,
            "|".join(map(re.escape, strangers.values())),
        ): [start.ljust(64) for start in strangers],
    }


def _texts() -> Defects:
    _, data = header_and_data(tensors())
    good = json.dumps(header_and_data(tensors())[0])
    texts = [
        b"",
        b"{",
        b'{"a": 1,}',
        b"{} {}",
        b'{"a": 0x10}',
        b'{"a\n": 1}',
        b"\0" * 64,
        b"\xef\xbb\xbf" + good.encode(),
        good.encode("utf-16"),
        b'{"\xff": 1}',
        good.encode()[:-1],
        b'{"a": ' + b"1" * 5000 + b"}",
    ]
    deep = [
        b'{"__metadata__":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" * 4_000_000,
        b'{"a":' * 800_000,
    ]
    many = [b"[" + b"1," * 2_000_000 + b"1]", b"{" + b"," * 4_000_000 + b"}"]
    many.append(b'{"a":[' + b"[]," * 1_300_000 + b"[]]}")
    entry = '"dtype":"F32","shape":[0],"data_offsets":[0,0]'
    twice = [
        f'{{"a":{{{entry}}},"a":{{{entry}}}}}',
        f'{{"a":{{{entry},"dtype":"F16"}}}}',
        '{"__metadata__":{},"__metadata__":{}}',
        good[:-1] + f', "{WORDS}": {{{entry}}}}}',
        f'{{"a":{{{entry}}},"\\u0061":{{{entry}}}}}',
    ]
    return {
        ("header not JSON", DamagedFileError, "the header of .* isn't JSON"): (
            join(text, data) for text in texts
        ),
        ("header nested deep", DamagedFileError, "maximum recursion|commas and brackets"): (
            join(text, data) for text in deep
        ),
        ("header of too many values", DamagedFileError, "commas and brackets; at most 1,048,576"): (
            join(text, data) for text in many
        ),
        ("header not an object", DamagedFileError, "must be one JSON object"): (
            join(value, data) for value in (b"[]", b"1", b"null", b'"x"', b"true", b"1e9", b"[{}]")
        ),
        ("header with a key twice", DamagedFileError, "the key '.*' appears twice"): (
            join(text.encode(), data) for text in twice
        ),
    }


def _structures() -> Defects:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    return {
        ("tensor entry not as it must be", DamagedFileError, "must have dtype, shape and"): _edited(
            *(
                lambda header, value=value: header.update({POOLER: value})
                for value in (None, 1, "F32", [], {}, {"dtype": "F32"}, [1, 2, 3])
            ),
            lambda header: header[POOLER].pop("dtype"),
            lambda header: header[POOLER].pop("shape"),
            lambda header: header[POOLER].pop("data_offsets"),
            lambda header: header[POOLER].update({"stride": [1]}),
        ),
        ("too many tensors", UnsafeFileError, "tensors; at most 20,000"): (
            join({str(number): entry for number in range(size)}, b"") for size in (20_001, 60_000)
        ),
        ("very many empty tensors", CheckpointError, "unknown .*; and 14992 more"): _edited(
            lambda header: header.update({f"x{number}": entry for number in range(15_000)})
        ),
        ("metadata of any kind", None, ""): _edited(
            *(
                lambda header, value=value: header.update({"__metadata__": value})
                for value in (None, 1, [], {"format": "tf"}, {"x": {"y": [1]}}, "\x1b[31m")
            )
        ),
    }


def _offsets() -> Defects:
    header, _ = header_and_data(tensors())
    begin, end = header[POOLER]["data_offsets"]
    size = end - begin
    places = "a tensor ends at byte"
    shifted = [begin - size, begin - 4, begin + 4, begin + size, 0, begin - 1, begin + 1]
    outside = [1 << 20, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62]
    huge = ([1 << 63, (1 << 63) + 32], [1 << 64, 1 << 65], [10**4000, 10**4000 + 32])
    wrong = (None, 5, "0", [], [1], [1, 2, 3], [0.0, 32.0], [False, True], ["0", "32"], *huge)
    return {
        ("offsets that overlap or leave a gap", DamagedFileError, places): _entries(
            "data_offsets", ([place, place + size] for place in shifted)
        ),
        ("offsets outside of the file", DamagedFileError, places): _entries(
            "data_offsets", ([place, place + size] for place in outside)
        ),
        ("offsets negative", DamagedFileError, "expected begin and end"): _entries(
            "data_offsets", ([-place, size - place] for place in (1, 4, size, 1 << 31, 1 << 63))
        ),
        (
            "offsets reversed or of another length",
            DamagedFileError,
            r"has -?[\d,]+ bytes, and F32 of the shape \[8\] takes 32",
        ): _entries(
            "data_offsets",
            ([end, begin], [begin, begin], [begin, end + 1], [begin, end - 1], [0, 1 << 62]),
        ),
        ("offsets not two numbers", DamagedFileError, "expected begin and end"): _entries(
            "data_offsets", wrong
        ),
        ("all tensors in the same bytes", DamagedFileError, places): (
            join(
                {f"t{number}": {**header[POOLER], "data_offsets": [0, 32]} for number in range(n)},
                bytes(32),
            )
            for n in (2, 100, 10_000)
        ),
    }


def _shapes() -> Defects:
    shapes = ([], [7], [9], [8, 2], [1 << 24], [1 << 62], [2, 2, 2, 2], [4])
    products = ([1 << 32] * 2, [1 << 62, 4], [1 << 62, 1 << 62], [(1 << 63) - 1] * 8)
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
    empty = {"dtype": "F32", "data_offsets": [0, 0]}
    sizes = ([0, 1 << 62], [(1 << 63) - 1, 0], [0], [0] * 8, [0, *[1 << 62] * 7])
    weights = tensors()
    grown = {name: torch.ones(9, *weights[name].shape[1:]) for name in (POOLER, NORM)}
    return {
        (
            "shape of other bytes",
            DamagedFileError,
            r"bytes, and F32 of the shape \[.*\] takes",
        ): _entries("shape", shapes),
        ("shape whose product overflows", DamagedFileError, r"F32 of the shape .* takes"): _entries(
            "shape", products
        ),
        ("shape not sizes", DamagedFileError, "expected sizes"): _entries("shape", wrong),
        ("no elements, and huge sizes", CheckpointError, "unknown"): _edited(
            *(
                lambda header, shape=shape: header.update({NORM + "s": {**empty, "shape": shape}})
                for shape in sizes
            )
        ),
        (
            "copy of huge sizes and no elements",
            CheckpointError,
            f"{DECODER} must equal {WORDS}, and doesn't",
        ): _edited(
            *(
                lambda header, shape=shape: header.update({DECODER: {**empty, "shape": shape}})
                for shape in sizes
            )
        ),
        ("tensor of another shape", CheckpointError, r"is \[.*\] and must be \["): _weights(
            *({name: tensor} for name, tensor in grown.items()),
            {WORDS: weights[WORDS].t().contiguous()},
            {WORDS: weights[WORDS][:-1]},
            {POOLER: torch.tensor(1.0)},
            {POOLER: torch.ones(0)},
        ),
    }


def _types() -> Defects:
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
    kinds = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    floats = (torch.float16, torch.bfloat16, torch.float64)
    odd = {"__metadata__": {"x": "y"}, **header_and_data(tensors())[0]}
    texts = [json.dumps(odd).encode() + b" " * more for more in range(1, 8)]
    return {
        ("unknown element type", DamagedFileError, "is of type .*; known are F64"): _entries(
            "dtype", unknown
        ),
        ("element type of another size", DamagedFileError, "bytes, and .* takes"): _entries(
            "dtype", ("F64", "F16", "BF16", "I64", "I16", "I8", "U8", "BOOL")
        ),
        (
            "weights of whole numbers",
            CheckpointError,
            "and must hold floating-point numbers",
        ): _weights(*({POOLER: torch.ones(8, dtype=kind)} for kind in kinds)),
        ("weights of other floating-point types", None, ""): (
            weights_file({name: t.to(kind) for name, t in tensors().items()}) for kind in floats
        ),
        ("weights at odd addresses", None, ""): (
            join(text, header_and_data(tensors())[1]) for text in texts
        ),
    }


def _meanings() -> Defects:
    weights = tensors()
    changed = [{POOLER: torch.full((8,), 1e300, dtype=torch.float64)}]  # too large for float32
    for value, kind in ((torch.nan, torch.float32), (-torch.inf, torch.float16)):
        changed.append({NORM: torch.tensor([1.0] * 7 + [value], dtype=kind)})
    equal = weights[WORDS]
    return {
        ("weights that aren't finite", CheckpointError, "has NaN or infinity"): _weights(*changed),
        ("missing tensors", CheckpointError, "missing bert"): (
            weights_file({their: weights[their] for their in weights if their != name})
            for name in list(weights)[:40:4]
        ),
        ("no tensors at all", CheckpointError, "no "): [
            join({}, b""),
            join({"__metadata__": {}}, b""),
        ],
        ("unequal copies of tied weights", CheckpointError, "must equal .*, and doesn't"): _weights(
            {DECODER: equal + 1e-3},
            {DECODER: equal[:-1]},
            {DECODER: equal.t().contiguous()},
            {DECODER: equal.to(torch.int32)},
            {DECODER: torch.full_like(equal, float("nan"))},
            {DECODER_BIAS: torch.ones(32)},
        ),
        ("equal copies of tied weights", None, ""): _weights(
            {DECODER: equal}, {DECODER_BIAS: weights["cls.predictions.bias"]}
        ),
    }


def _names() -> Defects:
    one = torch.ones(8)
    names = [
        "",
        "bert",
        "bert.embeddings.x",
        "bert.encoder.layer.2.output.dense.bias",
        "bert.encoder.layer.-1.output.dense.bias",
        "bert.encoder.layer.01.output.dense.bias",
        "bert.encoder.layer.١.output.dense.bias",
        "bert.pooler.dense.bias ",
        "../../weights",
        "bert.embeddings.\udcff",
    ]
    old = {NORM.replace("weight", "gamma"): torch.ones(8), POOLER.removeprefix("bert."): one}
    return {
        ("unknown tensors", CheckpointError, "unknown "): _weights(
            *({name: one} for name in names)
        ),
        ("names that a terminal would obey", CheckpointError, "unknown "): _weights(
            {"bert.embeddings.\x1b[2Jx": one}, {"bert.embeddings.\nx": one}, {"\x9b31m": one}
        ),
        ("names of a megabyte", CheckpointError, "unknown "): _weights(
            {"x" * 1_000_000: one}, {"bert.embeddings." + "x" * 4_000_000: one}
        ),
        ("one tensor under two names", CheckpointError, "two tensors mean"): _weights(
            *({name: tensor} for name, tensor in old.items())
        ),
    }


def _bits() -> Defects:
    whole = weights_file()
    size = len(header_and_data(tensors())[1])
    places = range(len(whole) - size, len(whole) - 4, size // 19 // 4 * 4)
    return {
        # the lowest byte of a number: it stays finite
        ("a bit flipped in weights without checksum", None, ""): (
            whole[:n] + bytes([whole[n] ^ 1 << n % 8]) + whole[n + 1 :] for n in places
        )
    }
