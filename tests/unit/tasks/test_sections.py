"""An evaluation on a page: nothing of the reader's machine, and nothing too large for memory."""

from bertkit.reports.mistakes import Mistakes
from bertkit.reports.report import Table
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.tasks.sections import MAX_METRICS, build_sections


def test_mistakes_and_metrics_are_told_as_people_write_them_without_the_folders():
    mistake = Mistake("/home/me/secret/dev.csv, line 3", "a text", "a", "b", 0.5, confidence=0.9)
    metrics = {"macro_f1": 0.5, "f1 my_label": 0.5}
    table, mistakes = build_sections(Evaluation(metrics, mistakes=(mistake,)))
    assert isinstance(table, Table)
    assert isinstance(mistakes, Mistakes)
    assert [row[0] for row in table.rows] == ["Macro F1", "F1 my_label"]
    assert mistakes.mistakes[0].place == "dev.csv, line 3"
    assert mistakes.mistakes[0].confidence == 0.9


def test_of_fifty_thousand_labels_the_page_shows_the_confused_and_some_metrics():
    labels = [f"label {number}" for number in range(50_000)]
    metrics = {"accuracy": 0.5, **{f"f1 {label}": 0.5 for label in labels}}
    evaluation = Evaluation(metrics, labels=tuple(labels), confusion={(7, 9): 3, (9, 9): 1})
    table, charts = build_sections(evaluation)
    assert len(table.rows) == MAX_METRICS
    assert "49,801 more" in table.note
    assert charts.charts[0].tabulate()[1] == [["label 7", "label 9", 3, "100.0 %"]]
