"""Predictions keep their rows: columns of the file, then the answer."""

from types import SimpleNamespace

import pytest

from bertkit.base.errors import InputError
from bertkit.base.progress import ProgressBar
from bertkit.data.tables.record import CsvStyle
from bertkit.jobs.predict import AnsweredRow, Answers, write_answers
from bertkit.jobs.settings import PredictSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.decoding import Classification, LabelForm
from bertkit.tasks.classify.task import Classify

FILM = Classification("good", 0.75, {"bad": 0.25, "good": 0.75}, ("good",))


def answers(**settings) -> Answers:
    task = Classify(ClassifySettings(), ("bad", "good"))
    return Answers(SimpleNamespace(task=task), [], settings=PredictSettings(**settings))


def row(**values) -> AnsweredRow:
    return AnsweredRow(3, values, None, FILM)


def test_a_row_has_its_columns_then_the_answer():
    assert answers().describe_row(row(id="a", text="t")) == {
        "id": "a",
        "text": "t",
        "label": "good",
        "probability": 0.75,
        "probability_bad": 0.25,
        "probability_good": 0.75,
    }


def test_a_column_of_the_same_name_stays():
    found = answers().describe_row(row(text="t", label="bad"))
    assert (found["label"], found["predicted_label"]) == ("bad", "good")
    assert "predicted_probability_good" in found


def test_predictions_of_an_earlier_model_stay():
    before = {"label": "bad", "predicted_label": "bad", "predicted_probability": 0.9}
    found = answers().describe_row(row(text="t", **before))
    assert {name: found[name] for name in before} == before
    assert found["predicted_2_label"] == "good"
    assert found["predicted_2_probability_good"] == 0.75


def test_all_rows_of_a_file_have_the_same_columns():
    file = SimpleNamespace(columns=("text", "label"))
    one = Answers(answers().predictor, [], file)
    assert list(one.describe_row(row(text="t")))[1] == "predicted_label"
    assert one.describe_row(row(text="t", label="bad"))["predicted_label"] == "good"
    with pytest.raises(InputError, match="row 3 has the column predicted_label, which rows before"):
        one.describe_row(row(text="t", predicted_label="bad"))


def test_csv_has_the_separator_and_the_mark_that_the_file_needs(tmp_path, monkeypatch):
    file = SimpleNamespace(columns=("text",), csv_style=CsvStyle(";", has_mark=True))
    one = Answers(answers().predictor, [], file)
    monkeypatch.setattr(Answers, "read", lambda *_: iter([row(text="a;b")]))
    write_answers(one, tmp_path / "a.csv", ProgressBar())
    lines = (tmp_path / "a.csv").read_bytes().decode("utf-8").splitlines()
    assert lines[0] == "\ufefftext;label;probability;probability_bad;probability_good"
    assert lines[1] == '"a;b";good;0.75;0.25;0.75'


def test_columns_can_be_chosen():
    found = answers(keep_columns=("doc.id", "none")).describe_row(row(doc={"id": 5}, text="t"))
    assert list(found)[:3] == ["doc.id", "none", "label"]
    assert (found["doc.id"], found["none"]) == (5, None)


def test_json_has_the_id_of_the_row():
    assert answers().describe_json(row(id="a"))["id"] == 3
    assert answers(id_column="id").describe_json(row(id="a"))["id"] == "a"


def test_several_labels_are_joined():
    form = LabelForm(separator=",")
    both = Classification("good", 0.75, {"bad": 0.6, "good": 0.75}, ("bad", "good"), form)
    assert both.to_row() == {
        "labels": "bad,good",
        "probability_bad": 0.6,
        "probability_good": 0.75,
    }
