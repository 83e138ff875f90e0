"""Lengths that don't fit are refused, and the command's words become questions."""

import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.settings import validate
from bertkit.tasks.answer import AnswerInputs, AnswerSettings


def test_a_question_leaves_room_for_the_context():
    assert AnswerSettings().question_limit == 64
    assert AnswerSettings(max_length=67).question_limit == 32
    message = (
        r"max_question_length \(64\) leaves no room .* max_length \(67\); it may be 63 at most"
    )
    with pytest.raises(SettingsError, match=message):
        validate(AnswerSettings, {"max_length": 67, "max_question_length": 64}, "a file")


def test_words_are_questions_about_the_context():
    inputs = AnswerInputs(context="Ada wrote it.")
    assert inputs.gather(["Who?", "What?"]) == [
        ("Who?", "Ada wrote it."),
        ("What?", "Ada wrote it."),
    ]
    assert AnswerInputs().gather([]) == []
    with pytest.raises(InputError, match="give it with --context"):
        AnswerInputs().gather(["Who?"])
