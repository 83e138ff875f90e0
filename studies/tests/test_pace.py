"""The time that is left is told by what was taken."""

from bertkit_studies.pace import StudyPace
from bertkit_studies.study import Cell

ONE, OTHER = Cell("one", 0), Cell("other", 0)


def test_before_the_first_cell_the_guess_counts():
    pace = StudyPace({"one": 60.0, "other": 120.0}, {})
    assert pace.describe([ONE, OTHER]) == "about 3 min"
    assert StudyPace({"one": 60.0}, {}).describe([ONE, OTHER]) == ""
    assert StudyPace({}, {}).describe([]) == ""


def test_what_was_taken_corrects_the_guess():
    pace = StudyPace({"one": 60.0, "other": 120.0}, {ONE: 30.0})
    assert pace.seconds_of("one") == 30.0
    assert pace.seconds_of("other") == 60.0
    assert StudyPace({}, {ONE: 30.0}).seconds_of("other") == 30.0
    assert StudyPace({"one": 0.0, "other": 1.0}, {ONE: 5.0}).seconds_of("other") == 1.0
