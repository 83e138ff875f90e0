"""What can't be meant together."""

import pytest
from pydantic import ValidationError

from bertkit.tasks.classify import ClassifySettings


def test_the_metric_follows_from_how_many_labels_a_text_has():
    assert ClassifySettings().choose_metric() == "accuracy"
    assert ClassifySettings(multi_label=True).choose_metric() == "micro_f1"
    assert ClassifySettings(metric="matthews").choose_metric() == "matthews"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"metric": "micro_f1"}, "without `multi_label`: accuracy, f1, macro_f1, matthews"),
        ({"metric": "f1", "multi_label": True}, "with `multi_label`: micro_f1, macro_f1"),
        ({"threshold": "best"}, "`threshold` is for `multi_label`"),
        ({"threshold": 1}, "expected best, or a number between 0 and 1, got 1"),
        ({"threshold": "most"}, "expected best, or a number between 0 and 1, got 'most'"),
        ({"labels": "a"}, "two or more different ones, not 'a'"),
        ({"labels": "a,b,a"}, "two or more different ones"),
        ({"labels": "a,,b"}, "two or more different ones"),
        ({"labels": "a,b", "positive_label": "c"}, "`positive_label` 'c' isn't among the labels"),
        ({"label_separator": ""}, "at least 1 character"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        ClassifySettings(**values)


def test_labels_stand_between_commas():
    assert ClassifySettings(labels="b, a").label_names == ("b", "a")
    assert ClassifySettings().label_names is None
