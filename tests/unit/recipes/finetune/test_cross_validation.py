"""Where few rows are held out, all rows are predicted by heads that haven't seen them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.recipes.finetune.small import TASK, make_rows, write_rows
from tests.unit.recipes.stopping import interrupt

from bertkit.base.errors import StoppedError
from bertkit.cli.predict import describe
from bertkit.recipes.finetune import cross_validation
from bertkit.recipes.finetune import run as recipe
from bertkit.recipes.finetune.run import finetune
from bertkit.recipes.finetune.saved import CrossValidated
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.metrics.shares import wilson_interval

LINEAR = FineTuneSettings(features="last", held_out=0.1, device="cpu")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Sixty rows, of which every fifth has the wrong label, so that no fold is all right."""
    rows = [row.rsplit(",", 1) for row in make_rows(60, 3)]
    for number in range(0, 60, 5):
        rows[number][1] = "bad" if rows[number][1] == "good" else "good"
    folder = tmp_path_factory.mktemp("mixed")
    return write_rows(folder / "rows.csv", [f"{text},{label}" for text, label in rows])


def test_few_held_out_rows_are_joined_by_all_others(sources, mixed, tmp_path):
    given = replace(sources, train=str(mixed), dev=None)
    result = finetune(given, tmp_path / "out", TASK, LINEAR)
    saved = result.saved
    assert saved.dev.num_examples == 6
    estimate = saved.cross_validated
    assert estimate.num_examples == 60
    share = estimate.metrics["accuracy"]
    assert 0.6 < share < 0.95  # a head that had seen the rows would be right about more
    assert estimate.intervals["accuracy"] == close(wilson_interval(share, 60))
    line = "By cross-validation on all 60 rows, of a head solved on the frozen encoder: accuracy "
    assert f"{line}{100 * share:.1f} % (" in describe(result)
    for name in ("README.md", "report.html"):
        assert line in (tmp_path / "out" / name).read_text(), name
    stored = json.loads((tmp_path / "out/metrics.json").read_text())["cross_validated"]
    assert stored["metrics"]["accuracy"] == close(share)


def test_enough_held_out_rows_stand_alone(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "ENOUGH_HELD_OUT", 16)
    assert finetune(sources, tmp_path, TASK, LINEAR).saved.cross_validated is None
    assert CrossValidated.read(tmp_path / "run") is None


@pytest.mark.parametrize(("is_same", "number"), [(True, 60), (False, 76)])
def test_rows_that_are_given_twice_count_once(
    sources, mixed, tmp_path, monkeypatch, is_same, number
):
    dev = str(mixed) if is_same else sources.dev
    given = replace(sources, train=str(mixed), dev=dev)
    monkeypatch.setattr(recipe, "evaluate_model", interrupt)
    with pytest.raises(StoppedError):
        finetune(given, tmp_path, TASK, LINEAR)
    assert CrossValidated.read(tmp_path / "run").num_examples == number


def test_texts_that_are_all_equal_have_no_folds(sources, tmp_path):
    rows = ["the cat,good", "the cat,bad"] * 4
    table = str(write_rows(tmp_path / "equal.csv", rows))
    given = replace(sources, train=table, dev=table)
    saved = finetune(given, tmp_path / "out", TASK, LINEAR).saved
    assert saved.cross_validated is None
    assert np.isfinite(saved.metrics["accuracy"])


def test_a_row_that_alone_has_its_label_is_left_out(sources, tmp_path):
    rows = [*make_rows(40, 3), "a dog saw the hat,goood"]
    given = replace(sources, train=str(write_rows(tmp_path / "odd.csv", rows)), dev=None)
    result = finetune(given, tmp_path / "out", TASK, LINEAR)
    estimate = result.saved.cross_validated
    assert (estimate.num_examples, estimate.num_alone) == (40, 1)
    assert "on all 41 rows but 1 whose label no other has, of a head" in describe(result)
