"""ONNX files that `bertkit export` wrote, as named tensors: the weights, without the graph.

An initializer has its weight's name in Hugging Face's files. `TRANSPOSED` follows it if the file
has the transposed matrix, and `SCALE` in the name of the scales of a matrix of integers. Files that
other tools wrote have names of their own and are refused.

Source: onnx/onnx.proto of the ONNX project, messages ModelProto, GraphProto and TensorProto.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.base.members import find_member
from bertkit.checkpoints.checkpoint import MAX_DIMENSIONS, LazyTensor, MappedFile
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.file_names import DATA_SUFFIX
from bertkit.checkpoints.protobuf_wire import Message

PRODUCER = "bertkit"
TRANSPOSED, SCALE = ".T", ".scale"
SENTENCE = "sentence."  # begins the names of sentence-embedding modules, which have own files

MAX_FIELDS = 20_000  # nodes and initializers of a graph; BERT-Large has 2,000
MAX_NAME_BYTES = 256
# Numbers of the fields that are read.
PRODUCER_NAME, GRAPH = 2, 7  # of a ModelProto
INITIALIZER = 5  # of a GraphProto
DIMENSIONS, DATA_TYPE, NAME, RAW_DATA, EXTERNAL_DATA = 1, 2, 8, 9, 13  # of a TensorProto
KEY, VALUE = 1, 2  # of an entry of EXTERNAL_DATA
DTYPES = {1: ElementType.F32, 3: ElementType.I8, 7: ElementType.I64}


def open_onnx(path: Path) -> dict[str, LazyTensor]:
    """Read and validate the initializers of an untrusted file, as weights in float32.

    A `CheckpointError` says that another tool wrote the file, an `UnsafeFileError` that it exceeds
    a limit, or names a file other than its own for weights.
    """
    model = Message.parse(memoryview(MappedFile.open(path).memory), str(path))
    if bytes(model.content(PRODUCER_NAME)) != PRODUCER.encode():
        raise CheckpointError(
            f"{path} wasn't written by `bertkit export`, and only such ONNX files can be read;"
            " load the weights that it was made from"
        )
    data_name = path.name + DATA_SUFFIX
    open_data = cache(lambda: MappedFile.open(find_member(path.parent, data_name)))
    initializers: dict[str, LazyTensor] = {}
    for graph in model.messages(GRAPH, MAX_FIELDS):
        for tensor in graph.messages(INITIALIZER):
            name, lazy = _read_initializer(tensor, path, open_data)
            if name in initializers:
                raise DamagedFileError(f"{path} has two initializers of the name {name!r:.80}")
            initializers[name] = lazy
    weights = {}
    for name, lazy in initializers.items():
        ours = name.removesuffix(TRANSPOSED)
        if not ours.endswith((".weight", ".bias")) or ours.startswith(SENTENCE):
            continue  # a constant, a scale, or a part of another file
        if lazy.dtype is ElementType.I8:
            lazy = _dequantize(f"{path}: {ours!r:.80}", lazy, initializers.get(f"{ours}{SCALE}"))
        if lazy.dtype is not ElementType.F32:
            raise DamagedFileError(f"{path}: {ours!r:.80} must hold float32 or int8 numbers")
        if ours in weights:
            raise DamagedFileError(f"{path} has two initializers for {ours!r:.80}")
        weights[ours] = lazy if ours == name else lazy.transposed()
    return weights


def _read_initializer(
    tensor: Message, path: Path, open_data: Callable[[], MappedFile]
) -> tuple[str, LazyTensor]:
    """Return the name of an initializer, and its values where they are."""
    content = bytes(tensor.content(NAME)[:MAX_NAME_BYTES])
    name = content.decode("utf-8", errors="backslashreplace")
    shape = tuple(tensor.integers(DIMENSIONS))
    if len(shape) > MAX_DIMENSIONS or any(size < 0 for size in shape):
        raise DamagedFileError(f"{path}: {name!r:.80} has the shape {shape!r:.80}; expected sizes")
    dtype = DTYPES.get(tensor.integer(DATA_TYPE))
    if dtype is None:  # a constant of the graph, such as a zero point
        return name, LazyTensor(shape, ElementType.U8, partial(np.empty, 0, np.uint8))
    num_bytes = math.prod(shape) * dtype.itemsize
    entries = {
        bytes(entry.content(KEY)): bytes(entry.content(VALUE))
        for entry in tensor.messages(EXTERNAL_DATA)
    }
    if entries:
        return name, _read_external(path, name, open_data, entries, shape, dtype)
    values = memoryview(tensor.content(RAW_DATA))
    if not values:  # a small constant, in a field of its own type
        return name, LazyTensor(shape, ElementType.U8, partial(np.empty, 0, np.uint8))
    if len(values) != num_bytes:
        raise DamagedFileError(
            f"{path}: {name!r:.80} has {len(values):,} bytes, and its shape {list(shape)} takes"
            f" {num_bytes:,}; fetch it again"
        )
    return name, LazyTensor(shape, dtype, partial(_copy, values, shape, dtype))


def _read_external(
    path: Path,
    name: str,
    open_data: Callable[[], MappedFile],
    entries: Mapping[bytes, bytes],
    shape: tuple[int, ...],
    dtype: ElementType,
) -> LazyTensor:
    """Return a tensor of the file beside `path`, the only external data that is read."""
    name, expected_file = f"{path}: {name!r:.80}", path.name + DATA_SUFFIX
    location = entries.get(b"location", b"")
    if location != expected_file.encode():
        raise UnsafeFileError(f"{name} lies in {location!r:.80}; expected {expected_file}")
    file = open_data()
    try:
        offset, length = int(entries[b"offset"]), int(entries[b"length"])
    except (KeyError, ValueError):
        raise DamagedFileError(f"{name} must have an offset and a length") from None
    expected = math.prod(shape) * dtype.itemsize
    if offset < 0 or length != expected or offset + length > file.size_bytes:
        raise DamagedFileError(
            f"{name} has {length:,} bytes from byte {offset:,} of {expected_file}, which has"
            f" {file.size_bytes:,}, and its shape {list(shape)} takes {expected:,}; fetch it again"
        )
    return file.tensor(offset, shape, dtype)


def _copy(content: memoryview, shape: tuple[int, ...], dtype: ElementType) -> Array:
    """Return a copy of a tensor, since the file doesn't align it."""
    return np.frombuffer(bytearray(content), dtype.stored).reshape(shape)


def _dequantize(name: str, values: LazyTensor, scales: LazyTensor | None) -> LazyTensor:
    """Return the float32 matrix of a matrix of int8 with a scale for each column."""
    if scales is None or scales.dtype is not ElementType.F32 or scales.shape != values.shape[1:]:
        raise DamagedFileError(f"{name} must have a scale for each of its columns")
    read = scales.read
    return LazyTensor(values.shape, ElementType.F32, lambda: values.read_float32() * read())
