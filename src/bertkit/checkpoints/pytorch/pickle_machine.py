"""A pickle interpreter that builds plain data and never calls or imports anything.

A pickle is a program for a stack machine, and Python's own interpreter calls whatever the file
names. This one supports only the opcodes that `torch.save` emits for a dict of tensors, in
protocols 2 to 4. A name in the file is looked up in a fixed table of allowed names; "calling" it
passes its arguments to our function for that name.
Source: the opcodes as documented in Python's `Lib/pickletools.py`.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.pytorch.pickle_state import MAX_NAME_BYTES, PickleReader, PickleStack

MAX_PICKLE_BYTES = 8 << 20  # BERT-Large's 400 tensors take 60 kB
MAX_OPERATIONS = 250_000  # BERT-Large needs 20,000; 250,000 take at most a second
MAX_INTEGER_BYTES = 16  # torch's magic number has ten

PROTOCOLS = (2, 3, 4)

Builder = Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True, slots=True)
class Name:
    """A global that the file refers to by dotted name; nothing is imported for it."""

    dotted: str


class PickleMachine:
    """Interprets consecutive pickles in a byte string."""

    def __init__(
        self, data: bytes, names: Mapping[str, Builder | None], load: Callable[[Any], Any]
    ) -> None:
        """Take the bytes and the allowed names.

        Args:
            data: the pickles, one after another.
            names: allowed dotted names, each with the function that receives the arguments of a
                call, or None if the name may be referenced but not called.
            load: maps a persistent id to its object.
        """
        self.reader = PickleReader(data)
        self.stack = PickleStack()
        self.names = names
        self.load = load
        self.num_operations = 0

    def run(self) -> Any:
        """Read the next pickle: numbers, strings, tuples, lists, dicts, names, built objects."""
        self.stack = PickleStack()
        start = self.reader.position
        if self.reader.take(1) != PROTO or self.reader.take(1)[0] not in PROTOCOLS:
            raise DamagedFileError(f"has no pickle of protocol 2 to 4 at byte {start:,}")
        while (opcode := self.reader.take(1)) != STOP:
            self.num_operations += 1
            if self.num_operations > MAX_OPERATIONS:
                raise UnsafeFileError(
                    f"has a pickle of over {MAX_OPERATIONS:,} operations; no weights need as many"
                )
            self._step(opcode)
        return self.stack.pop()

    def _step(self, opcode: bytes) -> None:
        reader, stack = self.reader, self.stack
        if opcode in CONSTANTS:
            stack.push(CONSTANTS[opcode]())
        elif opcode in NUMBERS:
            stack.push(reader.unpack(NUMBERS[opcode]))
        elif opcode in STRINGS:
            length, encoding = STRINGS[opcode]
            stack.push(reader.take_text(reader.unpack(length), encoding))
        elif opcode in GETS:
            stack.recall(reader.unpack(GETS[opcode]))
        elif opcode in PUTS:
            stack.memorize(reader.unpack(PUTS[opcode]))
        elif opcode in TUPLES:
            stack.push(tuple(stack.pop() for _ in range(TUPLES[opcode]))[::-1])
        elif opcode in OPERATIONS:
            OPERATIONS[opcode](self)
        else:
            raise UnsafeFileError(
                f"has the pickle operation {opcode!r} at byte {reader.position - 1:,}, which no"
                " weights need; it is damaged, or asks to run code"
            )


def advise_extraction(key: str) -> str:
    """Return how to get the weights out of a training checkpoint."""
    return (
        "keep a copy and save its weights alone: torch.save(torch.load(path, map_location='cpu',"
        f" weights_only=True)[{key[:80]!a}], path)"
    )


def set_items(target: dict[str, Any], keys: list[Any], values: list[Any]) -> None:
    """Set items with keys that are strings and not yet present.

    Only strings, because nested tuples of shared references may take forever to hash.
    """
    for key, value in zip(keys, values, strict=True):
        if type(key) is not str:
            raise CheckpointError(
                f"has a key of type {type(key).__name__}; expected names of tensors, as"
                " model.state_dict() has them. If it is a training checkpoint,"
                f" {advise_extraction('state_dict')}"
            )
        if key in target:
            raise DamagedFileError(f"has the key {key[:80]!a} twice")
        target[key] = value


def _append(machine: PickleMachine) -> None:
    value = machine.stack.pop()
    machine.stack.target(list, "append to").append(value)


def _append_marked(machine: PickleMachine) -> None:
    values = machine.stack.pop_marked()
    machine.stack.target(list, "append to").extend(values)


def _set_item(machine: PickleMachine) -> None:
    value = machine.stack.pop()
    key = machine.stack.pop()
    set_items(machine.stack.target(dict, "set a key of"), [key], [value])


def _set_marked_items(machine: PickleMachine) -> None:
    values = machine.stack.pop_marked()
    if len(values) % 2:
        raise DamagedFileError("has a pickle with a key that has no value")
    set_items(machine.stack.target(dict, "set a key of"), values[::2], values[1::2])


def _drop_attributes(machine: PickleMachine) -> None:
    """Discard `_metadata` of a module's state dict: the versions of its parts."""
    attributes = machine.stack.pop()
    machine.stack.target(dict, "set attributes of")
    if type(attributes) is not dict:
        raise UnsafeFileError(f"asks to set attributes from a {type(attributes).__name__}")


def _push_name(machine: PickleMachine) -> None:
    module = machine.reader.take_line()
    _look_up(machine, module, machine.reader.take_line())


def _push_stacked_name(machine: PickleMachine) -> None:
    name = machine.stack.pop()
    module = machine.stack.pop()
    if type(module) is not str or type(name) is not str:
        raise DamagedFileError("has a pickle with a name that isn't made of strings")
    _look_up(machine, module[:MAX_NAME_BYTES], name[:MAX_NAME_BYTES])


def _look_up(machine: PickleMachine, module: str, name: str) -> None:
    dotted = f"{module}.{name}"
    if dotted not in machine.names:
        raise UnsafeFileError(
            f"asks to call {ascii(dotted)[1:-1]}, which no weights need; it was not called. Don't"
            " open the file with another program unless you trust who made it"
        )
    machine.stack.push(Name(dotted))


def _build(machine: PickleMachine) -> None:
    arguments = machine.stack.pop()
    name = machine.stack.pop()
    build = machine.names[name.dotted] if type(name) is Name else None
    if build is None or type(arguments) is not tuple:
        what = name.dotted if type(name) is Name else f"a {type(name).__name__}"
        raise UnsafeFileError(
            f"asks to call {what} with a {type(arguments).__name__}, which no weights need"
        )
    machine.stack.push(build(arguments))


def _push_integer(machine: PickleMachine) -> None:
    num_bytes = machine.reader.unpack(BYTE)
    if num_bytes > MAX_INTEGER_BYTES:
        raise UnsafeFileError(
            f"has an integer of {num_bytes} bytes; no weights need over {MAX_INTEGER_BYTES}"
        )
    data = machine.reader.take(num_bytes)
    machine.stack.push(int.from_bytes(data, "little", signed=True))


def _check_frame(machine: PickleMachine) -> None:
    num_bytes = machine.reader.unpack(QUAD)
    if num_bytes > machine.reader.num_left():
        raise DamagedFileError(
            f"has a pickle with a frame of {num_bytes:,} bytes that aren't there"
        )


BYTE, SHORT, LONG, QUAD = (struct.Struct(f"<{size}") for size in "BHIQ")
PROTO, STOP = b"\x80", b"."

CONSTANTS: dict[bytes, Callable[[], Any]] = {
    b"N": lambda: None,
    b"\x88": lambda: True,
    b"\x89": lambda: False,
    b")": tuple,
    b"]": list,
    b"}": dict,
}
NUMBERS = {b"K": BYTE, b"M": SHORT, b"J": struct.Struct("<i"), b"G": struct.Struct(">d")}
STRINGS = {
    b"X": (LONG, "utf-8"),
    b"\x8c": (BYTE, "utf-8"),
    b"U": (BYTE, "ascii"),  # strings of Python 2
    b"T": (LONG, "ascii"),
}
GETS = {b"h": BYTE, b"j": LONG}
PUTS = {b"q": BYTE, b"r": LONG}
TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}
OPERATIONS: dict[bytes, Callable[[PickleMachine], None]] = {
    b"(": lambda machine: machine.stack.mark(),
    b"t": lambda machine: machine.stack.push(tuple(machine.stack.pop_marked())),
    b"a": _append,
    b"e": _append_marked,
    b"s": _set_item,
    b"u": _set_marked_items,
    b"b": _drop_attributes,
    b"c": _push_name,
    b"\x93": _push_stacked_name,
    b"R": _build,
    b"Q": lambda machine: machine.stack.push(machine.load(machine.stack.pop())),
    b"\x8a": _push_integer,
    b"\x94": lambda machine: machine.stack.memorize(),
    b"\x95": _check_frame,
}
