"""The examples in the docstrings of the functions, with the model that comes with bertkit."""

import doctest

import pytest

import bertkit
from bertkit.api import language, training, vectors

pytest.importorskip("bertkit_minilm")


@pytest.mark.parametrize("module", [language, training, vectors], ids=lambda one: one.__name__)
def test_the_examples_print_what_they_say(module, capsys):
    found = doctest.testmod(module, extraglobs={"bertkit": bertkit})
    assert found.attempted > 1
    assert found.failed == 0, capsys.readouterr().out
