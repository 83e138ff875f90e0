"""The columns that commands take."""

import pytest

from bertkit.base.errors import SettingsError
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.settings import choose_columns, with_columns
from bertkit.tasks.tag import TagSettings


def test_a_column_of_several_tasks_is_described_as_in_each():
    fields = choose_columns(ClassifySettings, RegressSettings, TagSettings).model_fields
    assert set(fields) == {
        "text_column", "pair_column", "label_column", "words_column", "tags_column"
    }  # fmt: skip
    label = fields["label_column"].description
    assert label.startswith("Column of the label; by default")
    assert " Or: Column of the number; by default" in label
    same = TagSettings.model_fields["words_column"].description
    assert fields["words_column"].description == same
    both = choose_columns(ClassifySettings, ClassifySettings).model_fields["text_column"]
    assert both.description == ClassifySettings.model_fields["text_column"].description


def test_columns_replace_those_of_training_where_they_are_given():
    kind = choose_columns(ClassifySettings, TagSettings)
    trained = ClassifySettings(text_column="body", label_column="stars")
    found = with_columns(trained, kind(text_column="review"))
    assert (found.text_column, found.label_column) == ("review", "stars")
    with pytest.raises(SettingsError, match="this task has no words_column"):
        with_columns(trained, kind(words_column="tokens"))
