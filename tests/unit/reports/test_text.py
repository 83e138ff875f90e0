"""Foreign text: legible, and as short as its place asks for."""

import math
from xml.etree import ElementTree as ET

import pytest

from bertkit.reports.text import (
    MetricCell,
    count_columns,
    format_cell,
    format_metric,
    format_percent,
    make_legible,
    shorten,
    show,
)


def test_what_is_no_character_is_replaced_one_for_one():
    text = "a\x00b\x1b[2J\x7f\x85\ufffe\udce9\n\té🙂"
    assert make_legible(text) == "a␀b␛[2J\ufffd\ufffd\ufffd\ufffd\n\té🙂"
    assert make_legible("plain, größer, 漢字, שלום") == "plain, größer, 漢字, שלום"


def test_nothing_turns_hides_or_splits_what_is_shown():
    assert make_legible("a\u202eb\u2066c\u2069") == "a�b�c�"
    assert make_legible("zero\u200bwidth\ufeff line\u2028end") == "zero�width� line�end"
    joined = "\u0646\u200c\u0647 \U0001f469\u200d\U0001f52c \u05d0\u200f"
    assert make_legible(joined) == joined


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\n\t c ", "a b c"),
        ("\x1b[31mred", "␛[31mred"),
        ("over\u202eturned", "over�turned"),
        ("漢" * 100, "漢" * 9 + "…"),
        ("x" * 200_000, "x" * 19 + "…"),
        (" " * 200_000 + "x", "…"),
    ],
)
def test_a_foreign_word_is_shown_in_a_line(text, shown):
    assert show(text, 20) == shown


def test_every_code_point_becomes_one_that_xml_takes():
    legible = make_legible("".join(map(chr, (*range(0x3000), *range(0xD700, 0x10100)))))
    element = ET.Element("a")
    element.text = legible
    parsed = ET.fromstring(ET.tostring(element, encoding="utf-8")).text
    assert parsed == legible.replace("\r", "\n")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("exactly 10", "exactly 10"),
        ("eleven long", "eleven lo…"),
        ("漢字漢字漢", "漢字漢字漢"),
        ("漢字漢字漢字", "漢字漢字…"),
    ],
)
def test_a_long_name_is_cut_to_its_columns(text, short):
    assert shorten(text, 10) == short
    assert count_columns(short) <= 10


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("12", "12"),
        (1234567, "1,234,567"),
        (0.123456, "0.123"),
        (1e-4, "0.0001"),
        (12345.6, "12,346"),
        (1e20, "1e+20"),
        (math.nan, "not defined"),
        (math.inf, "inf"),
        (MetricCell(0.775, is_share=True), "77.5 %"),
        (MetricCell(0.775, True, (0.7012, 0.83)), "77.5 % (70.1–83.0 %)"),
        (MetricCell(0.775, interval=(math.nan, 1.0)), "0.775"),
        (MetricCell(0.912, interval=(0.8971, 0.926)), "0.912 (0.897–0.926)"),
        (MetricCell(-1234.5, interval=(-2000, 0)), "-1,234 (-2,000–0)"),
        (MetricCell(math.nan, interval=(0.1, 0.2)), "not defined"),
    ],
)
def test_each_kind_of_cell_is_readable(cell, text):
    assert format_cell(cell) == text


SHARES = "accuracy, macro_f1, f1 my label, exact_match, HasAns_f1, recall@10, mlm_accuracy"
# `log_probability` of a text is a sum, such as -15.8
NO_SHARES = "loss, log_probability, mean_squared_error, matthews, rouge2"


def test_the_name_of_a_metric_says_whether_it_is_a_share():
    for name in (*SHARES.split(", "), "calibration_error", "probability"):
        assert format_metric(name, 0.5) == "50.0 %", name
    for name in NO_SHARES.split(", "):
        assert format_metric(name, 0.5) == "0.500", name
    assert format_metric("loss", None) == format_metric("accuracy", None) == "not defined"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (1e-9, "<0.1 %"), (0.0005, "0.1 %"), (1, "100.0 %"), (-0.25, "-25.0 %")],
)
def test_a_share_is_a_percentage_with_one_decimal(share, text):
    assert format_percent(share) == text
