"""Foreign text: legible, and as short as its place asks for."""

from xml.etree import ElementTree as ET

import pytest

from bertkit.reports.text import count_columns, make_legible, shorten


def test_what_is_no_character_is_replaced_one_for_one():
    text = "a\x00b\x1b[2J\x7f\x85\ufffe\udce9\n\té🙂"
    assert make_legible(text) == "a␀b␛[2J\ufffd\ufffd\ufffd\ufffd\n\té🙂"
    assert make_legible("plain, größer, 漢字, שלום") == "plain, größer, 漢字, שלום"


def test_every_code_point_becomes_one_that_xml_takes():
    legible = make_legible("".join(map(chr, (*range(0x3000), *range(0xD700, 0x10100)))))
    element = ET.Element("a")
    element.text = legible
    parsed = ET.fromstring(ET.tostring(element, encoding="utf-8")).text
    assert parsed == legible.replace("\r", "\n")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("exactly 10", "exactly 10"),
        ("eleven long", "eleven lo…"),
        ("漢字漢字漢", "漢字漢字漢"),
        ("漢字漢字漢字", "漢字漢字…"),
        ("a" * 100_000, "a" * 9 + "…"),
    ],
)
def test_a_long_name_is_cut_to_its_columns(text, short):
    assert shorten(text, 10) == short
    assert count_columns(short) <= 10
