import collections
import functools
import pickle
import re
from typing import Any

import pytest
from tests.pickles import PROTO, STOP, call, group, integer, mapping, name, text

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.pytorch import pickle_machine, pickle_state
from bertkit.checkpoints.pytorch.pickle_machine import Name, PickleMachine, set_items

NAMES = {"collections.OrderedDict": lambda arguments: dict(*arguments), "torch.FloatStorage": None}


def run(data: bytes) -> Any:
    return PickleMachine(data, NAMES, lambda persistent_id: ("loaded", persistent_id)).run()


PLAIN = [
    None,
    True,
    False,
    0,
    255,
    65535,
    -1,
    2**31,
    -(2**40),
    pickle_machine.MAX_OPERATIONS,
    1.5,
    "",
    "naïve ☕",
    "x" * 300,
    (),
    (1,),
    (1, 2),
    (1, (2, "3"), 4, 5),
    [],
    [1],
    [1, 2, [3]],
    {},
    {"a": 1},
    {"a": 1, "b": {"c": None}},
    {str(number): number for number in range(3000)},
    ["a", "a"],
]


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("write", [pickle.dumps, pickle._dumps])
@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:20])
def test_plain_values_are_what_python_reads(value, protocol, write):
    assert run(write(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_an_ordered_dict_is_a_dict_without_its_attributes(protocol):
    value = collections.OrderedDict(a=1, b=(2,))
    value.note = {"c": 3}
    read = run(pickle.dumps(value, protocol))
    assert read == {"a": 1, "b": (2,)}
    assert type(read) is dict


def test_a_value_that_is_named_twice_is_one():
    shared = [1]
    read = run(pickle.dumps([shared, shared], 2))
    assert read[0] is read[1]


def test_strings_of_python_2_are_strings():
    assert run(PROTO + b"U\x02ab" + STOP) == "ab"
    assert run(PROTO + b"T\x02\x00\x00\x00ab" + STOP) == "ab"


def test_a_persistent_id_goes_to_the_caller():
    assert run(PROTO + text("key") + b"Q" + STOP) == ("loaded", "key")


def test_a_name_stays_a_name():
    assert run(PROTO + name("torch.FloatStorage") + STOP) == Name("torch.FloatStorage")


def test_pickles_lie_one_behind_another():
    machine = PickleMachine(pickle.dumps(1, 2) + pickle.dumps("b", 4) + b"rest", NAMES, list)
    assert (machine.run(), machine.run()) == (1, "b")
    assert machine.reader.num_left() == 4


class Caller:
    """Pickles to a call of anything."""

    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (Caller(print, ("canary",)), "(__builtin__|builtins).print"),
        (Caller(eval, ("1",)), "(__builtin__|builtins).eval"),
        (Caller(getattr, ("", "join")), "(__builtin__|builtins).getattr"),
        (Caller(functools.partial, (print,)), "functools.partial"),
        (functools.partial(print), "functools.partial"),
        ({"a": collections.Counter("a")}, "collections.Counter"),
        ([1j], "(__builtin__|builtins).complex"),
    ],
)
def test_what_it_asks_to_call_is_named_and_not_called(value, asked, protocol, capsys):
    with pytest.raises(UnsafeFileError, match=f"asks to call {asked}, .*not called"):
        run(pickle.dumps(value, protocol))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (call("torch.FloatStorage", integer(4)), "call torch.FloatStorage with a tuple"),
        (name("collections.OrderedDict") + b"NR", "call collections.OrderedDict with a NoneType"),
        (integer(1) + b")R", "call a int with a tuple"),
        (b"}" + name("torch.FloatStorage") + b"b", "set attributes from a Name"),
        (name("torch.FloatStorage") + b"}b", "set attributes of a Name; expected a dict"),
        (name("torch.FloatStorage") + text("a") + b"Ns", "set a key of a Name; expected a dict"),
        (b"]" + text("a") + b"Ns", "set a key of a list; expected a dict"),
        (b"}Na", "append to a dict; expected a list"),
        (b"}(Ne", "append to a dict; expected a list"),
        (b"(iposix\nsystem\n", r"operation b'i' at byte 3"),
        (b"\x82\x01", r"operation b'\\x82' at byte 2"),
        (b"\x8b\xff\xff\xff\x7f", r"operation b'\\x8b' at byte 2"),
        (b"\x8a\xff" + bytes(255), "integer of 255 bytes; no weights need over 16"),
        (b"\x8c\x05posix\x8c\x06system\x93", "asks to call posix.system"),
        (b"cposix\nsys\xc3\xa9tem\n", r"asks to call posix.sys\\xe9tem"),
        (b"(" * 101, "nested over 100 deep"),
    ],
)
def test_what_no_weights_need_is_refused(program, message):
    with pytest.raises(UnsafeFileError, match=message):
        run(PROTO + program + STOP)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wants 1 bytes at byte 0, where 0 are left"),
        (b"\x80", "wants 1 bytes at byte 1"),
        (b"\x81\x02N.", "no pickle of protocol 2 to 4 at byte 0"),
        (b"\x80\x05N.", "no pickle of protocol 2 to 4 at byte 0"),
        (b"\x80\x01N.", "no pickle of protocol 2 to 4 at byte 0"),
        (PROTO + b"N", "wants 1 bytes at byte 3"),
        (PROTO + STOP, "takes more values than it gave"),
        (PROTO + b"(.", "takes more values than it gave"),
        (PROTO + b"N(a.", "takes more values than it gave"),
        (PROTO + b"t.", "ends a list which it never began"),
        (PROTO + b"h\x00.", "recalls value 0 before it is there"),
        (PROTO + b"j\x00\x00\x00\x40.", "recalls value 1,073,741,824 before"),
        (PROTO + b"X\xff\xff\xff\xffab.", "wants 4,294,967,295 bytes at byte 7"),
        (PROTO + b"X\x01\x00\x00\x00\xff.", "a string that isn't utf-8 before byte 8"),
        (PROTO + b"X\x03\x00\x00\x00\xed\xa0\x80.", "a string that isn't utf-8"),
        (PROTO + b"U\x01\xe9.", "a string that isn't ascii"),
        (PROTO + b"}(" + text("a") + b"u.", "a key that has no value"),
        (PROTO + b"NN\x93.", "a name that isn't made of strings"),
        (PROTO + b"c" + b"a" * 300 + b"\nb\n.", "has no name at byte 3"),
        (PROTO + b"cposix\nsystem", "has no name at byte 9"),
        (PROTO + b"cpos\xffix\nsystem\n.", "a string that isn't utf-8"),
        (PROTO + b"\x95" + b"\xff" * 8 + b"N.", "a frame of 18,446,744,073,709,551,615 bytes"),
        (PROTO + mapping((text("a"), b"N"), (text("a"), b"N")) + STOP, "the key 'a' twice"),
    ],
)
def test_what_is_no_whole_pickle_is_refused(data, message):
    with pytest.raises(DamagedFileError, match=re.escape(message)):
        run(data)


@pytest.mark.parametrize(
    ("key", "kind"), [(integer(1), "int"), (group(), "tuple"), (b"N", "NoneType")]
)
def test_keys_are_strings(key, kind):
    with pytest.raises(CheckpointError, match=f"a key of type {kind}; expected names"):
        run(PROTO + mapping((key, b"N")) + STOP)


def test_references_to_references_are_neither_followed_nor_hashed():
    """Each tuple holds the one before twice: 2 to the power of 60 ends, were they looked at."""
    doubled = b"".join(b"q%ch%c\x86" % (index, index) for index in range(60))
    with pytest.raises(CheckpointError, match="a key of type tuple"):
        run(PROTO + b"}" + b")" + doubled + b"Ns" + STOP)


def test_memory_is_taken_by_values_and_not_by_their_numbers():
    assert run(PROTO + b"Nr\xff\xff\xff\xff" + STOP) is None


@pytest.mark.parametrize(
    ("module", "limit", "program", "message"),
    [
        (pickle_machine, "MAX_OPERATIONS", b"N\x85" * 6, "over 10 operations"),
        (pickle_state, "MAX_STACK", b"N" * 11, "over 10 values under way"),
        (pickle_state, "MAX_MEMORIZED", b"N" + b"\x94" * 11, "keeps over 10 values"),
    ],
)
def test_each_limit_holds(module, limit, program, message, monkeypatch):
    monkeypatch.setattr(module, limit, 10)
    with pytest.raises(UnsafeFileError, match=message):
        run(PROTO + program + STOP)
    assert run(PROTO + b"N" * 9 + STOP) is None


def test_items_are_set_in_their_order():
    target = {"a": 1}
    set_items(target, ["c", "b"], [2, 3])
    assert list(target.items()) == [("a", 1), ("c", 2), ("b", 3)]
