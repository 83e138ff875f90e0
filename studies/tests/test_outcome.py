"""Figures become rows, tables and verdicts."""

import json
import math
from dataclasses import replace

from studies.tests.small import COURSE, LOSS, SCORE, build_outcome

from bertkit.base.checksummed_json import verify_row
from bertkit_studies.outcome import write_results
from bertkit_studies.saved import CellFailure, CellResult, SavedFigure
from bertkit_studies.study import FIRST, LAST, Cell, Side
from bertkit_studies.verdict import Standing


def test_spreads_are_taken_over_the_seeds():
    outcome = build_outcome()
    spread = outcome.spread(SCORE, Side("good"))
    assert (spread.median, spread.low, spread.high) == (0.81, 0.8, 0.8200000000000001)
    assert outcome.spread(SCORE, Side("nobody")).values == ()


def test_a_side_of_a_curve_is_the_nearest_place_that_was_measured():
    outcome = build_outcome(num_seeds=1)
    assert outcome.places(COURSE, "good") == [5.0, 10.0, 20.0]
    for at, value in ((FIRST, 0.2), (LAST, 0.8), (None, 0.8), (11.0, 0.4), (1e9, 0.8)):
        assert outcome.spread(COURSE, Side("good", at)).values == (value,)


def test_each_claim_has_a_verdict():
    verdicts = build_outcome().verdicts
    assert [one.standing for one in verdicts] == [
        Standing.SHOWN,
        Standing.NOT_SHOWN,
        Standing.OPPOSITE,
        Standing.SHOWN,
        Standing.NOT_MEASURED,
    ]
    assert verdicts[-1].explain() == "not measured: the data has no task to measure it"
    verdicts = build_outcome(arms=["good"]).verdicts
    assert [one.standing.name for one in verdicts] == [
        *["NOT_MEASURED"] * 3,
        "SHOWN",
        "NOT_MEASURED",
    ]
    assert verdicts[0].explain() == "not measured: no run of bad is done"


def test_a_cell_that_failed_leaves_what_is_claimed_of_its_arm_undecided():
    failures = {Cell("bad", 3): CellFailure(error="InputError", message="no text")}
    outcome = replace(build_outcome(), failures=failures)
    standings = [one.standing for one in outcome.verdicts]
    assert standings[:2] == [Standing.UNDECIDED, Standing.NOT_SHOWN]
    assert standings[2] is Standing.UNDECIDED
    assert "1 of 4 runs of bad failed or have no value" in outcome.verdicts[0].explain()
    _, rows = outcome.tabulate()
    assert [row[1] for row in rows] == ["3", "3 of 4", "3"]


def test_a_cell_that_diverged_is_the_worst_of_its_arm_in_all_but_speed():
    failures = {
        Cell("bad", 3): CellFailure(error="NonFiniteError", message="loss nan"),
        Cell("good", 3): CellFailure(error="InputError", message="no text"),
    }
    outcome = replace(build_outcome(), failures=failures)
    spread = outcome.spread(LOSS, Side("bad"))
    assert (len(spread.values), spread.num_failed, spread.num_diverged) == (3, 0, 1)
    spread = outcome.spread(replace(SCORE, is_speed=True), Side("bad"))
    assert (len(spread.values), spread.num_failed, spread.num_diverged) == (3, 1, 0)
    spread = outcome.spread(SCORE, Side("good"))
    assert (len(spread.values), spread.num_failed, spread.num_diverged) == (3, 1, 0)
    outcome = replace(outcome, failures={Cell("bad", 3): failures[Cell("bad", 3)]})
    assert outcome.verdicts[0].standing is Standing.SHOWN
    assert "1 of 4 runs of bad diverged" in outcome.verdicts[0].explain()
    _, rows = outcome.tabulate()
    assert [row[1] for row in rows] == ["3", "3 of 4", "3"]


def test_the_table_has_the_arms_that_are_done_and_the_measures_that_there_are():
    columns, rows = build_outcome(arms=["good", "bad"]).tabulate()
    assert columns == [
        "arm",
        "runs",
        "Score of the task (higher is better)",
        "Loss (lower is better)",
        "Score over time (higher is better)",
    ]
    good = ["good", "3", "81.0 % (80.0–82.0 %)", "0.190 (0.180–0.200)", "81.0 % (80.0–82.0 %)"]
    assert rows[0] == good
    assert [row[0] for row in rows] == ["good", "bad"]


def test_rows_are_sealed_and_hold_every_figure(tmp_path):
    outcome = build_outcome(num_seeds=1, arms=["good"])
    cell = Cell("bad", 0)
    undefined = (SavedFigure(measure="score", value=None),)
    results = {**outcome.results, cell: CellResult(arm="bad", seed=0, seconds=1, figures=undefined)}
    failures = {Cell("middle", 0): CellFailure(error="InputError", message="no\ntext")}
    outcome = type(outcome)(outcome.study, outcome.record, results, failures, [])
    write_results(tmp_path, outcome)
    rows = [verify_row(line) for line in (tmp_path / "results.jsonl").read_bytes().splitlines()]
    assert rows[0] == {"arm": "good", "seed": 0, "measure": "score", "value": 0.8}
    assert {"arm": "good", "seed": 0, "measure": "history", "at": 5.0, "value": 0.2} in rows
    assert rows[-2:] == [
        {"arm": "bad", "seed": 0, "measure": "score", "value": None},
        {"arm": "middle", "seed": 0, "failure": "no\ntext"},
    ]
    assert math.isnan(outcome.spread(SCORE, Side("bad")).median)
    assert outcome.summarize().endswith("1 of 3 runs failed.")


def test_the_outcome_for_programs():
    found = build_outcome().to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["study"] == "small"
    assert [arm["arm"] for arm in found["arms"]] == ["good", "bad", "middle"]
    measures = found["arms"][1]["measures"]
    assert measures["score"] == [{"median": 0.51, "values": [0.5, 0.51, 0.52]}]
    assert [point["at"] for point in measures["history"]] == [5.0, 10.0, 20.0]
    assert LOSS.name in measures
    assert "never" not in measures
    standings = [one["standing"] for one in found["verdicts"]]
    assert standings == ["shown", "not_shown", "opposite", "shown", "not_measured"]
    assert found["verdicts"][-1]["why"] == "the data has no task to measure it"
