"""The report, the table and the words for a terminal."""

from dataclasses import replace

from studies.tests.small import build_outcome

from bertkit_studies.page import align, build_markdown, build_report, describe_outcome, write_pages
from bertkit_studies.saved import CellFailure
from bertkit_studies.study import Cell

COMMAND = "bertkit study small --output 'a b'"


def test_the_page_tells_question_finding_verdicts_and_command(tmp_path):
    outcome = build_outcome()
    write_pages(tmp_path, outcome, COMMAND)
    html = (tmp_path / "report.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "Is good better than bad?",
        "A paper found that it is.",
        "Of 5 published claims: 2 shown, 1 not shown at this scale, 1 the other way",
        "round, 1 not measured",
        "the data has no task to measure it",
        "Nothing is trained here.",
        "bertkit study small --output &#39;a b&#39;",
        "81.0 % (80.0–82.0 %)",
        "the middle one",
    ):
        assert words in html
    assert html.count("<polyline") == 3  # an arm each, of the measure that lies over something
    assert html.count("<polygon") == 3  # the spread of its seeds
    assert "Never measured" not in html


def test_what_wasnt_measured_and_wasnt_run_is_told():
    outcome = replace(build_outcome(arms=["bad"]), missing=[Cell("good", 0)])
    report = build_report(outcome, COMMAND)
    assert "Of 5 published claims: 5 not measured." in report.title
    assert "no run of good is done" in build_markdown(outcome, COMMAND)
    assert "1 of 4 runs weren't made" in report.title


def test_failures_are_told_everywhere():
    failures = {Cell("bad", 0): CellFailure(error="InputError", message="no text <b>")}
    outcome = replace(build_outcome(arms=["good"]), failures=failures)
    [table] = [one for one in build_report(outcome, COMMAND).sections if "failed" in one.title]
    assert list(table.rows) == [["bad", 0, "InputError", "no text <b>"]]
    assert "bad, seed 0, failed: no text <b>" in describe_outcome(outcome)


def test_the_table_is_markdown_with_verdicts_and_curves():
    text = build_markdown(build_outcome(), COMMAND)
    assert "\n\n- good: the good one\n" in text
    units = "Score of the task (share of all); Loss (nats); Score over time (share of all)."
    assert f"\n\nMeasured: {units}\n\n| arm |" in text
    assert "| good | 3 | 81.0 % (80.0–82.0 %) | 0.190 (0.180–0.200) |" in text
    assert "- Good is better than bad (A 2018, table 1). Here: shown: " in text
    assert "| steps | good | bad | middle |" in text
    assert "| 10 | 40.5 % (40.0–41.0 %) |" in text
    assert text.endswith(f"```console\n$ {COMMAND}\n```\n")


def test_the_terminal_has_aligned_columns():
    assert align([["arm", "runs"], ["longer name", "3"]]) == ["arm          runs", "longer name  3"]
    lines = describe_outcome(build_outcome())
    assert lines[0] == "Is good better than bad?"
    assert "good    3     81.0 % (80.0–82.0 %)  0.190 (0.180–0.200)  81.0 % (80.0–82.0 %)" in lines
