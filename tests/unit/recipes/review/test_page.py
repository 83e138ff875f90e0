"""The page to go through: what travels in it, and its scripts in the parts that need no browser."""

import json
import math
from pathlib import Path

from tests.scripts import run_script_tests

from bertkit.recipes.review.page import PageRow, ReviewPage
from bertkit.reports.text import make_legible

TEXT = "</script> \u202e \ud83d ünd"


def test_texts_travel_as_they_are_and_only_in_data_blocks():
    row = PageRow(7, "a.csv, row 7", TEXT, "bad", "", math.nan, ["why"], [8])
    page = ReviewPage("Review", ["one line"], ["bad", TEXT], [row], "sha").build()
    assert json.loads(page.arrays["labels"]) == ["bad", TEXT]
    assert json.loads(page.arrays["rows"]) == [vars(row) | {"probability": None}]
    assert "\u202e" not in page.render()
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_scripts_of_the_page(tmp_path):
    codes = [code for code in range(0x10000) if make_legible(chr(code)) != chr(code)]
    (tmp_path / "illegible.json").write_text(json.dumps(codes))
    folder = Path(__file__).parent / "page"
    run_script_tests(folder, tmp_path, ("bertkit.recipes.review", "page"))
