import inspect
import pickle

import pytest

from bertkit.base import errors
from bertkit.base.errors import BertkitError, StoppedError, pluralize

ERRORS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__ == errors.__name__
]


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind is not BertkitError])
def test_each_error_is_ours_and_a_built_in(kind):
    assert issubclass(kind, BertkitError)
    built_in = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    if kind is not StoppedError:  # nothing built in means "stopped, and can go on"
        assert built_in[0] not in {Exception, BaseException, object}


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_keeps_its_message_between_processes(kind):
    assert str(pickle.loads(pickle.dumps(kind("a b: c")))) == "a b: c"


def test_exit_codes():
    assert {kind.__name__: kind.exit_code for kind in ERRORS if kind.exit_code != 2} == {
        "StoppedError": 75
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, "text"), "0 texts"),
        ((1, "text"), "1 text"),
        ((2000, "text"), "2,000 texts"),
        ((1.0, "epoch"), "1 epoch"),
        ((0.9999, "epoch"), "1 epoch"),
        ((1.254, "epoch"), "1.25 epochs"),
        ((1, "entry", "entries"), "1 entry"),
        ((3, "entry", "entries"), "3 entries"),
    ],
)
def test_a_noun_agrees_with_the_number_that_is_shown(arguments, expected):
    assert pluralize(*arguments) == expected
