"""What isn't Unicode in arguments is mended, however they are held."""

import pytest

from bertkit.base.surrogates import replace_surrogates


@pytest.mark.parametrize(
    ("value", "mended"),
    [
        ("a\udcff", "a\ufffd"),
        (("a", "b\udcff"), ("a", "b\ufffd")),
        ({"choices": ["\udcff"], "question": None}, {"choices": ["\ufffd"], "question": None}),
    ],
)
def test_inputs_of_all_kinds_are_mended(value, mended):
    assert replace_surrogates(value) == mended
