"""Labels that no model has learned, from a list, a file and rows."""

import pytest
from pydantic import ValidationError

from bertkit.base.errors import InputError
from bertkit.tasks.classify import ZeroShotSettings
from bertkit.tasks.classify.zero_shot import ZeroShot, read_zero_shot


def test_labels_are_listed_with_commas_or_in_python():
    wanted = {"billing": "", "2": ""}
    assert read_zero_shot("billing, 2.0").labels == wanted
    assert read_zero_shot(["billing", "2"]).labels == wanted
    assert (
        read_zero_shot({"billing": " About money. ", "2": ""}).labels["billing"] == "About money."
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.txt", "bad\nok\n"),
        ("labels.csv", "label,description\nbad,Hated it.\nok,\n"),
        (
            "labels.jsonl",
            '{"label": "bad", "description": "Hated it."}\n{"label": "ok", "description": null}\n',
        ),
    ],
)
def test_labels_of_a_file_may_have_descriptions(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    described = "" if name == "labels.txt" else "Hated it."
    for given in (path, str(path)):
        assert dict(read_zero_shot(given).labels) == {"bad": described, "ok": ""}


def test_a_description_takes_the_place_of_the_template():
    labels = {"bad": "I hated it.", "a {label}": ""}
    assert ZeroShot(labels).list_sentences("It is {label}.") == ["I hated it.", "It is a {label}."]
    assert ZeroShot(labels, "{label}!").list_sentences("It is {label}.")[1] == "a {label}!"
    with pytest.raises(ValidationError, match=r"must have \{label\} where the label stands"):
        ZeroShotSettings(template="It is {}.")


@pytest.mark.parametrize("given", ["bad", "", "bad,", "bad,bad", "missing.csv", ["a"], {"a": "b"}])
def test_fewer_than_two_labels_are_refused(given):
    with pytest.raises(InputError, match="two or more different ones, separated by commas, or a f"):
        read_zero_shot(given)


def test_a_broken_row_of_labels_is_an_error(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("label,description\nbad,x\n,y\n", "utf-8")
    with pytest.raises(InputError, match=r"labels\.csv.* has an empty label in label"):
        read_zero_shot(str(path))
    path.write_text("name,description\nbad,x\n", "utf-8")
    with pytest.raises(InputError, match="no column for the label"):
        read_zero_shot(str(path))
