"""All heads at a glance in a real browser: pictures, names, enlarging, and the way to the lines."""

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import PIXELS, observe, write_scene
from tests.closeness import close
from tests.unit.inference.small import save_small

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.inspected_model import InspectedModel


@pytest.fixture
def page(open_page, tmp_path, inspected):
    inputs = observe(inspected, "the cat saw the hat .", without=(HeadName(2, 2),))
    page = open_page(write_scene(tmp_path / "page.html", inputs))
    page.get_by_role("tab", name="All heads").click()
    for canvas in page.locator(".model-cell canvas").all():
        expect(canvas).to_have_attribute("width", "8")
    return page


def cell(page, layer, head):
    return page.locator(".model-row").nth(layer).locator(".model-cell").nth(head - 1)


def first_pixels(page):
    """The upper left corner of each small picture."""
    return page.locator(".model-cell canvas").evaluate_all(
        f"all => all.map((canvas) => ({PIXELS})(canvas).slice(0, 4).join())"
    )


def test_each_head_has_a_picture_and_its_pattern(page):
    patterns = page.evaluate("JSON.parse(document.getElementById('data').textContent).patterns")
    names = page.locator(".model-cell").all_inner_texts()
    expected = [pattern["name"] for layer in patterns for pattern in layer]
    assert names == [*expected[:3], "off"]
    assert page.locator(".model-cell.off").get_attribute("aria-label") == "head 2.2: off"


def test_many_heads_have_pictures_of_one_size_and_whole_names(open_page, tmp_path):
    save_small(tmp_path / "many", num_hidden_layers=24, num_attention_heads=16, hidden_size=32)
    inputs = observe(InspectedModel.load(tmp_path / "many"), "the cat")
    page = open_page(write_scene(tmp_path / "page.html", inputs))
    page.get_by_role("tab", name="All heads").click()
    cells = page.locator(".model-cell")
    assert cells.count() == 24 * 16
    write = "(span, name) => { span.textContent = name; }"
    for index, name in enumerate(("previous", "same word", "broad")):
        cells.nth(index).locator("span").evaluate(write, name)
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        widths = page.locator(".model-cell canvas").evaluate_all(
            "all => all.map((canvas) => canvas.getBoundingClientRect().width)"
        )
        assert max(widths) - min(widths) < 1
        cut = "all => all.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
        assert cells.evaluate_all(cut) == 0
        names = [cells.nth(index).locator("span").bounding_box() for index in (0, 2)]
        assert names[0]["height"] == names[1]["height"], "previous stands in one line"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_pictures_show_the_weights_as_squares_or_lines(page):
    page.get_by_role("button", name="light / dark").click()
    before = first_pixels(page)
    page.get_by_role("button", name="light / dark").click()
    assert first_pixels(page) != before, "they are drawn again in the other colors"
    assert len(set(first_pixels(page))) > 1
    page.get_by_role("button", name="lines", exact=True).click()
    expect(page.locator(".model-cell canvas").first).to_have_attribute("width", "160")
    page.get_by_role("button", name="squares").click()
    expect(page.locator(".model-cell canvas").first).to_have_attribute("width", "8")


def test_a_click_or_keys_enlarge_and_lead_to_the_lines(page):
    cell(page, 2, 1).click()
    dialog = page.get_by_role("dialog", name="Head 2.1")
    assert dialog.is_visible()
    assert dialog.locator("tr").count() == 6
    dialog.get_by_role("button", name="See its lines").click()
    assert page.get_by_role("tab", selected=True).inner_text() == "Heads"
    chosen = page.locator(".controls [aria-pressed=true]").all_inner_texts()
    assert chosen == ["2", "1"]
    page.get_by_role("tab", name="All heads").click()
    cell(page, 1, 1).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog", name="Head 2.2").is_visible()
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("dialog", name="Head 1.2").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", selected=True).inner_text() == "Heads"


def test_pointing_at_a_square_reads_it(page, inspected):
    cell(page, 1, 2).click()
    square = page.locator("canvas.square")
    box = square.bounding_box()
    scale = box["width"] / 516
    step = 420 / 8
    # from the third token to the fifth
    square.hover(position={"x": scale * (96 + 4.5 * step), "y": scale * (96 + 2.5 * step)})
    reading = page.locator(".square-reading")
    assert reading.inner_text().startswith("cat (3) attends to the (5): ")
    weights = inspected.observe(inspected.read("the cat saw the hat .")).layers[0].weights
    percent = float(reading.inner_text().split(": ")[1].removesuffix(" %"))
    assert percent == close(100 * float(weights[1, 2, 4]), within=1)
    square.hover(position={"x": 5, "y": 5})
    assert reading.inner_text().startswith("Each row")
