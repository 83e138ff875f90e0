"""Going through rows in a real browser, by keys and by mouse."""

import csv
import math

import pytest
from playwright.sync_api import expect

from bertkit.recipes.review.page import PageRow, ReviewPage
from bertkit.reports.interactive import write_page

HOSTILE = '</script><img src=x onerror=alert(1)>\u202e"cba", \n'
ROWS = [
    PageRow(17, "a.csv, row 17", "A warm film.", "bad", "good", 0.98, ["in every fold"], [31, 99]),
    PageRow(4, "a.csv, row 4", HOSTILE + "x" * 100_000, "good", HOSTILE, 0.5, [HOSTILE], []),
    PageRow(31, "a.csv, row 31", "A warm film!", "", "", math.nan, [], [17]),
]


@pytest.fixture
def show(open_page, tmp_path):
    def show_rows(rows=ROWS, labels=("bad", "good", "neutral", HOSTILE), lines=1, **options):
        path, summary = tmp_path / "review.html", [f"finding {line}" for line in range(lines)]
        write_page(path, ReviewPage("Review of a.csv", summary, labels, rows, "sha").build())
        page = open_page(path, **options)
        page.locator(".card > p" if rows else "main").first.wait_for()
        return page

    return show_rows


def place(page):
    return page.locator(".card > p").first


def save(page, press=lambda page: page.keyboard.press("Control+s")):
    with page.expect_download() as saved:
        press(page)
    assert saved.value.suggested_filename == "decisions.csv"
    content = saved.value.path().read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(content.decode("utf-8-sig").splitlines(keepends=True)))[1:]


def test_rows_are_decided_by_keys_alone(show):
    page = show()
    expect(place(page)).to_have_text("a.csv, row 17")
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.type("Neu")
    expect(page.get_by_label("Another label")).to_have_value("Neu")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Row 31: changed to neutral.")
    expect(page.locator(".made").last).to_have_text("→")
    first, second, third = save(page)
    assert first == ["17", "a.csv, row 17", "A warm film.", "bad", "change", "good"]
    assert second == ["4", "a.csv, row 4", HOSTILE + "x" * 100_000, "good", "keep", ""]
    assert third[3:] == ["", "change", "neutral"]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".card .made")).to_have_text("Decided: changed to good")
    page.keyboard.type("b")  # the label that it has
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # no label is likely
    page.keyboard.type("Other, too")
    expect(page.get_by_role("group", name="Labels")).to_have_text("Other, too (new) Enter")
    page.keyboard.press("Escape")
    assert [row[4:] for row in save(page)] == [["keep", ""], ["skip", ""], ["change", "neutral"]]
    page.get_by_label("Another label").press("Enter")
    assert save(page)[2][4:] == ["change", "Other, too"]
    expect(page.locator(".state")).to_contain_text("3 of 3 decided: 1 changed, 1 kept, 1 skipped")


def test_rows_are_decided_by_mouse(show):
    page = show()
    page.get_by_role("button", name="row 31").click()
    expect(place(page)).to_have_text("a.csv, row 31")
    expect(page.get_by_role("button", name="Change to")).to_have_count(0)
    page.get_by_role("group", name="Labels").get_by_role("button", name="neutral").click()
    page.get_by_role("option").first.click()
    page.get_by_role("button", name="Change to good").click()
    page.keyboard.press("Space")  # decides about the next row; the button has no focus any more
    saved = save(page, lambda page: page.get_by_role("button", name="Save").click())
    assert [row[4:] for row in saved] == [["change", "good"], ["keep", ""], ["change", "neutral"]]


def test_a_key_held_down_decides_once_and_a_button_takes_its_own_keys(show):
    page = show(lines=20)
    expect(page.get_by_text("finding 19")).to_be_hidden()
    page.locator("summary").press("Space")
    expect(page.get_by_text("finding 19")).to_be_visible()
    page.locator(".card").focus()
    page.keyboard.down("Space")
    page.keyboard.down("Space")  # repeated by the keyboard
    page.keyboard.up("Space")
    expect(place(page)).to_have_text("a.csv, row 4")
    page.get_by_role("button", name="Skip", exact=True).press("Space")
    expect(page.get_by_role("status")).to_have_text("Row 4: skipped.")
    page.keyboard.press("Alt+Enter")
    page.keyboard.press("Control+Enter")
    assert [row[4:] for row in save(page)] == [["keep", ""], ["skip", ""]]


def test_decisions_outlast_the_page(show):
    page = show()
    page.keyboard.press("Enter")
    page.reload()
    expect(place(page)).to_have_text("a.csv, row 4")
    expect(page.locator(".state")).to_contain_text("1 changed")
    expect(page.locator(".state")).to_contain_text("This browser remembers them")
    page = show(script="Object.defineProperty(window, 'localStorage', {get() {throw 1;}})")
    page.keyboard.press("Enter")
    expect(page.locator(".state")).to_contain_text("1 changed")
    expect(page.locator(".state")).to_contain_text("save before you close the page")
    assert len(save(page)) == 1


def test_a_text_can_do_nothing(show):
    page = show()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#text")).to_contain_text("</script><img src=x onerror=alert(1)>\ufffd")
    expect(page.locator("img")).to_have_count(0)
    assert "\u202e" not in page.locator("main").inner_text()
    assert page.locator("#text").bounding_box()["height"] < 0.4 * 900
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.keyboard.press("Enter")
    assert save(page)[0][-1] == HOSTILE


def test_of_many_rows_only_those_in_sight_are_in_the_document(show):
    text = "A film that is neither warm nor funny."
    rows = [PageRow(n, f"row {n}", text, "1", "2", 0.9, [], []) for n in range(1, 20_001)]
    page = show(rows, [str(label) for label in range(1000)])
    options = page.get_by_role("option")
    assert 10 < options.count() < 60
    page.keyboard.press("Enter")
    page.locator(".list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    page.get_by_role("option").filter(has_text="20000").click()
    expect(place(page)).to_have_text("row 20000")
    assert 10 < options.count() < 60
    page.keyboard.press("Space")  # the last one: the page stays there
    expect(place(page)).to_have_text("row 20000")
    expect(page.locator(".state")).to_contain_text("2 of 20,000 decided")
    page.keyboard.type("99")
    chips = page.get_by_role("group", name="Labels").get_by_role("button")
    expect(chips.first).to_have_text("99 Enter")
    expect(chips).to_have_count(8)


def test_a_narrow_window_has_everything(show):
    page = show(viewport={"width": 360, "height": 700}, color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(20, 24, 28)")
    expect(page.get_by_role("option")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_rows_it_says_so(show):
    expect(show([]).locator("main")).to_contain_text("There is no row to look at.")
