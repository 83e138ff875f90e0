"""The model card tells a command that there is."""

import shlex
from types import SimpleNamespace

import pytest

from bertkit.cli.app import build_app
from bertkit.decoders.seq2seq.card import describe_use
from bertkit.decoders.seq2seq.settings import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_of_a_card_can_be_given(kind):
    facts = SimpleNamespace(name="my model", kind=KINDS[kind], saved=SimpleNamespace(kind=kind))
    line = describe_use(facts).splitlines()[3]
    program, *words = shlex.split(line)
    command, bound, _ = build_app().parse_args(words, exit_on_error=False, print_error=False)
    assert (program, command.__name__) == ("bertkit", kind)
    given = bound.arguments  # some commands take the model as the first of their inputs
    assert given.get("model", given.get("inputs", ("",))[0]) == "my model"
    assert words[-1] in str(bound.arguments)
