"""The examples in the docstrings of the functions, with the model that comes with bertkit."""

import doctest

import pytest

import bertkit
from bertkit.api import training, using

pytest.importorskip("bertkit_minilm")


@pytest.mark.parametrize("module", [training, using], ids=["training", "using"])
def test_the_examples_print_what_they_say(module, capsys):
    found = doctest.testmod(module, extraglobs={"bertkit": bertkit})
    assert found.attempted > 1
    assert found.failed == 0, capsys.readouterr().out
