"""Sums of words as `bertkit nearest` reads them."""

import pytest

from bertkit.base.errors import InputError
from bertkit.cli.search import read_sum


@pytest.mark.parametrize(
    ("expression", "plus", "minus"),
    [
        ("king - man + woman", ["king", "woman"], ["man"]),
        ("king  \u2212  queen", ["king"], ["queen"]),
        ("+ king - New York", ["king"], ["New York"]),
        ("well-known", ["well-known"], []),
        ("-", ["-"], []),
        ("\u2212", ["\u2212"], []),
    ],
)
def test_operators_stand_between_blanks(expression, plus, minus):
    assert read_sum(expression) == (plus, minus)


@pytest.mark.parametrize("expression", ["king - - queen", "king -", "king - + queen"])
def test_an_operator_needs_a_word(expression):
    with pytest.raises(InputError, match="has no word after -"):
        read_sum(expression)
