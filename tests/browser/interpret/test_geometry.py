"""The geometry view in a real browser: points move, are pointed at and kept; a word's contexts."""

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import observe, write_scene

from bertkit.interpret.contexts import compare_contexts

STILL = {"reduced_motion": "reduce"}
TEXT = "the cats saw the cat - a dog lost a hat ."
HOSTILE = "the cat </script><img src=x onerror=alert(1)> hat"


@pytest.fixture(scope="module")
def path(inspected, tmp_path_factory):
    contexts = compare_contexts(inspected, "cat", ["the cat saw a hat", "a cat .", HOSTILE])
    inputs = observe(inspected, TEXT, contexts=contexts)
    return write_scene(tmp_path_factory.mktemp("geometry") / "page.html", inputs, "geometry")


def marks(page):
    return page.locator(".plane-main .plane-mark")


def place(mark):
    return mark.get_attribute("transform")


def choose_layer(page, layer):
    page.get_by_label("After").fill(str(layer))


def test_points_move_with_the_layer(open_page, path):
    page = open_page(path, **STILL)
    assert page.locator(".layer-slider output").inner_text() == "layer 1"
    before = [place(mark) for mark in marks(page).all()]
    assert page.locator(".plane-shares").inner_text().startswith("This picture shows ")
    choose_layer(page, 0)
    assert page.locator(".layer-slider output").inner_text() == "embeddings"
    after = [place(mark) for mark in marks(page).all()]
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 13


def test_points_arrive_where_motion_is_welcome(open_page, path):
    still, moving = open_page(path, **STILL), open_page(path)
    for page in (still, moving):
        choose_layer(page, 2)
    expected = place(marks(still).nth(4))
    expect(marks(moving).nth(4)).to_have_attribute("transform", expected)


def test_special_tokens_are_shown_when_asked_for_and_places_are_joined(open_page, path):
    page = open_page(path, **STILL)
    assert page.locator(".plane-main line.pieces").count() == 1
    assert page.locator(".plane-main line.same").count() == 3  # the, cat, a
    assert not marks(page).first.is_visible()
    page.get_by_label("with special tokens").check()
    assert marks(page).first.is_visible()
    assert all(mark.is_visible() for mark in marks(page).all())


def test_the_layer_is_that_of_the_other_views(open_page, inspected, tmp_path):
    path = write_scene(tmp_path / "page.html", observe(inspected, TEXT), "heads", "geometry")
    page = open_page(path, **STILL)
    chosen = page.get_by_role("group", name="Layer").locator("[aria-pressed=true]")
    output = page.locator(".layer-slider output")
    for layer, name, others in ((2, "layer 2", "2"), (0, "embeddings", "1"), (1, "layer 1", "1")):
        page.get_by_role("tab", name="Geometry").click()
        choose_layer(page, layer)
        page.get_by_role("tab", name="Heads").click()
        assert chosen.inner_text() == others
        page.get_by_role("tab", name="Geometry").click()
        assert output.inner_text() == name
    page.get_by_role("tab", name="Heads").click()
    page.get_by_role("group", name="Layer").get_by_role("button", name="2").click()
    page.get_by_role("tab", name="Geometry").click()
    assert output.inner_text() == "layer 2"


def test_a_token_that_is_pointed_at_or_gone_to_by_keys_tells_its_nearest(open_page, path):
    page = open_page(path, **STILL)
    detail = page.locator(".plane-detail")
    assert "Point at a token" in detail.inner_text()
    marks(page).nth(2).locator("circle").hover()
    assert detail.locator("h2").inner_text() == "Nearest to cat (3)"
    assert detail.locator("tbody tr").count() == 5
    assert page.locator(".plane-main line.ray").count() == 5
    page.locator(".plane-shares").hover()
    assert "Point at a token" in detail.inner_text()
    page.get_by_label("After").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".layer-slider output").inner_text() == "layer 2"
    page.keyboard.press("Tab")  # to the choice of special tokens
    page.keyboard.press("Tab")
    heading = page.locator(".plane-detail h2")
    assert heading.inner_text() == "Nearest to the (2)"
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert heading.inner_text() == "Nearest to cat (3)"
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    assert heading.inner_text() == "Nearest to . (14)"
    assert marks(page).nth(2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert marks(page).nth(2).get_attribute("aria-pressed") == "false"
    for shown in ("Nearest to cat (3)", "Point at a token"):  # kept by a click, and let go
        marks(page).nth(2).locator("circle").click()
        page.locator(".plane-shares").hover()
        assert shown in detail.inner_text()


def test_contexts_are_compared_with_the_chosen_place(open_page, path):
    page = open_page(path, **STILL)
    quotes = page.locator(".quote")
    assert quotes.count() == 3
    assert quotes.nth(2).locator("b").inner_text() == "cat"
    assert "</script><img src=x onerror=alert(1)>" in quotes.nth(2).inner_text()
    columns = page.locator(".cosines thead th")
    assert columns.all_inner_texts() == ["layer", "2", "3", "mean", "different"]
    assert page.locator(".cosine-chart polyline").count() == 4
    quotes.nth(1).click()
    assert columns.all_inner_texts() == ["layer", "1", "3", "mean", "different"]
    assert "cosine of place 2" in page.locator(".cosines caption").inner_text()
    assert quotes.nth(1).get_attribute("aria-pressed") == "true"
    assert page.locator(".cosines tr.shown th").inner_text() == "1"
    choose_layer(page, 0)
    assert page.locator(".cosines tr.shown th").inner_text() == "embeddings"


def test_what_cant_be_laid_out_says_so(open_page, inspected, tmp_path):
    one = write_scene(tmp_path / "one.html", observe(inspected, "cat"), "geometry")
    page = open_page(one, **STILL)
    assert "There is one point" in page.locator(".plane-shares").inner_text()
    twins = compare_contexts(inspected, "cat", ["cat", "cat"])
    inputs = observe(inspected, "cat", contexts=twins)
    page = open_page(write_scene(tmp_path / "twins.html", inputs, "geometry"), **STILL)
    assert page.locator(".cosines tbody td").last.inner_text() == "–"
    assert page.locator(".contexts .plane-mark").count() == 2
    path = write_scene(tmp_path / "long.html", observe(inspected, "cat " * 60), "geometry")
    page = open_page(path, **STILL)
    note = page.locator(".plane .quiet").first.inner_text()
    assert "no room" in note


def test_the_picture_can_be_enlarged_and_moved(open_page, path):
    page = open_page(path, **STILL)
    before = place(marks(page).nth(1))
    page.get_by_label("larger").first.click()
    assert place(marks(page).nth(1)) != before
    enlarged = place(marks(page).nth(1))
    box = page.locator(".plane-main svg").bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(box["x"] + 43, box["y"] + 23)
    page.mouse.up()
    assert place(marks(page).nth(1)) != enlarged
    page.get_by_label("see all").first.click()
    assert place(marks(page).nth(1)) == before
