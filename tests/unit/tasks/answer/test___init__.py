"""Lengths that don't fit are refused, and the command's words become questions."""

import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.settings import validate
from bertkit.tasks.answer import AnswerInputs, AnswerSettings


def test_the_defaults_are_googles():
    settings = AnswerSettings()
    lengths = (settings.max_length, settings.doc_stride, settings.max_question_length)
    assert lengths == (384, 128, 64)
    assert (settings.max_answer_length, settings.n_best) == (30, 20)


def test_a_question_leaves_room_for_the_context():
    AnswerSettings(max_length=68)
    message = (
        r"max_question_length \(64\) leaves no room .* max_length \(67\); it may be 63 at most"
    )
    with pytest.raises(SettingsError, match=message):
        validate(AnswerSettings, {"max_length": 67}, "a file")


@pytest.mark.parametrize(
    "values", [{"doc_stride": 0}, {"n_best": 1}, {"max_answer_length": 0}, {"version": "3"}]
)
def test_what_cannot_be_meant_is_refused(values):
    with pytest.raises(SettingsError, match=next(iter(values))):
        validate(AnswerSettings, values, "a file")


def test_words_are_questions_about_the_context():
    inputs = AnswerInputs(context="Ada wrote it.")
    assert inputs.gather(["Who?", "What?"]) == [
        ("Who?", "Ada wrote it."),
        ("What?", "Ada wrote it."),
    ]
    assert AnswerInputs().gather([]) == []
    with pytest.raises(InputError, match="give it with --context"):
        AnswerInputs().gather(["Who?"])
