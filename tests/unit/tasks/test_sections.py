"""An evaluation on a page: nothing of the reader's machine, and nothing too large for memory."""

import numpy as np

from bertkit.reports.mistakes import Mistakes
from bertkit.tasks import sections
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.tasks.sections import build_sections, draw_confusion, list_mistakes

LABELS = ("a", "b", "c")


def test_places_are_told_without_the_folders():
    mistake = Mistake("/home/me/secret/dev.csv, line 3", "a text", "a", "b", 0.5)
    found = list_mistakes(Evaluation({}, mistakes=(mistake,)))
    assert isinstance(found, Mistakes)
    assert [each.place for each in found.mistakes] == ["dev.csv, line 3"]


def test_a_matrix_of_too_many_labels_is_left_out(monkeypatch):
    evaluation = Evaluation({}, labels=LABELS, confusion=np.eye(3, dtype=np.int64))
    assert draw_confusion(evaluation) is not None
    num_sections = len(build_sections(evaluation))
    monkeypatch.setattr(sections, "MAX_MATRIX_LABELS", 2)
    assert draw_confusion(evaluation) is None
    assert len(build_sections(evaluation)) == num_sections - 1
