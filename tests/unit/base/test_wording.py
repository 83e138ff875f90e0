import pytest

from bertkit.base.wording import pluralize


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
