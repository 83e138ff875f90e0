"""The columns that commands take."""

import pytest

from bertkit.base.errors import SettingsError
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.settings import choose_columns, with_columns
from bertkit.tasks.table import TASKS
from bertkit.tasks.tag import TagSettings


def test_a_column_means_the_same_in_all_tasks():
    kinds = [entry.settings for entry in TASKS.values()]
    fields = choose_columns(*kinds).model_fields
    assert fields.keys() == {
        *("text_column", "pair_column", "label_column"),
        *("question_column", "context_column", "choices_column"),
    }
    for kind in kinds:
        for name in fields.keys() & kind.model_fields.keys():
            text = fields[name].description.replace(" that of training, else", "")
            assert text == kind.model_fields[name].description


def test_columns_replace_those_of_training_where_they_are_given():
    kind = choose_columns(ClassifySettings, TagSettings)
    trained = ClassifySettings(text_column="body", label_column="stars")
    found = with_columns(trained, kind(text_column="review"))
    assert (found.text_column, found.label_column) == ("review", "stars")
    kind = choose_columns(AnswerSettings)
    with pytest.raises(SettingsError, match="this task has no context_column"):
        with_columns(trained, kind(context_column="body"))
