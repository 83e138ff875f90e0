"""The neuron view in a real browser: a query, the keys, and the attention that they make."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import PIXELS, observe, write_scene
from tests.closeness import close

from bertkit.interpret.ablation import HeadName

TEXT = "the cats saw a hat ."
SAW = 4  # the token that looks in most tests


@pytest.fixture(scope="module")
def inputs(inspected):
    return observe(inspected, TEXT)


@pytest.fixture(scope="module")
def path(inputs, tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("neurons") / "page.html", inputs, "neurons")


@pytest.fixture
def start(open_page):
    """Opens a page, and waits until the view is drawn."""

    def open_path(path, **options):
        page = open_page(path, **options)
        wait_until_drawn(page)
        return page

    return open_path


def wait_until_drawn(page):
    page.locator("#view-neurons p.quiet:not(:empty)").wait_for()


def tokens(page):
    return page.locator("button.neuron-token")


def block(page, name):
    return page.locator(".block", has=page.get_by_role("img", name=name, exact=True))


def pictures(page):
    """What is seen of queries, keys and products, pixel by pixel."""
    shown = page.locator(".block:visible canvas")
    return [canvas.evaluate(f"canvas => ({PIXELS})(canvas).join()") for canvas in shown.all()]


def are_other(before, after):
    return len(before) == 3 and all(one != other for one, other in zip(before, after, strict=True))


def reading(page):
    return page.get_by_role("status").inner_text()


def number(text):
    return float(text.replace("−", "-").removesuffix(" %"))


def shown_numbers(page, name):
    """What a column of numbers shows."""
    part = page.locator(".neuron-part", has=page.locator("b", has_text=name))
    return [number(text) for text in part.locator(".neuron-figure:visible").all_inner_texts()]


def is_overview(page):
    return block(page, "scores of all pairs").is_visible()


def test_before_a_token_is_chosen_a_pair_tells_its_score_and_attention(start, path, inputs):
    page = start(path)
    assert tokens(page).all_inner_texts() == inputs.observation.encoded.tokens
    assert is_overview(page)
    assert block(page, "queries").is_visible()
    assert not block(page, "keys").is_visible()
    assert "Choose a token" in page.locator("#view-neurons").inner_text()
    pairs = block(page, "scores of all pairs")
    size = pairs.bounding_box()
    cell = size["width"] / 9, size["height"] / 9
    pairs.hover(position={"x": 2.5 * cell[0], "y": 4.5 * cell[1]})
    layer = inputs.observation.layers[0]
    found = re.fullmatch(r"“saw” attends to “cat”: score (\S+), attention (.*)", reading(page))
    assert number(found[1]) == close(float(layer.scores[0, SAW, 2]), within=0.1)
    assert number(found[2]) == close(100 * float(layer.weights[0, SAW, 2]), within=0.5)
    pairs.click(position={"x": 2.5 * cell[0], "y": 4.5 * cell[1]})
    assert not is_overview(page)
    assert tokens(page).nth(SAW).get_attribute("aria-pressed") == "true"


def test_a_click_shows_how_the_attention_of_a_token_is_made(start, path, inputs):
    page = start(path)
    tokens(page).nth(SAW).click()
    assert not is_overview(page)
    layer = inputs.observation.layers[0]
    expected = (100 * layer.weights[0, SAW]).tolist()
    assert shown_numbers(page, "softmax") == close(expected, within=0.6)
    assert shown_numbers(page, "q · k") == close(layer.scores[0, SAW].tolist(), within=0.1)
    assert page.locator(".neuron-lines line").count() == sum(share >= 0.5 for share in expected)
    heard = page.locator("li.neuron-token").nth(2).text_content()
    assert re.fullmatch(r"cat: score \S+, \S+ %", heard)
    page.mouse.move(5, 5)
    assert not is_overview(page)
    tokens(page).nth(SAW).click()
    page.mouse.move(5, 5)
    assert is_overview(page)


def test_a_number_that_is_pointed_at_is_read_out_and_values_are_shown(start, path, inputs):
    page = start(path)
    tokens(page).nth(SAW).click()
    product = block(page, "products of query and keys")
    size = product.bounding_box()
    product.hover(position={"x": 1.5 * size["width"] / 4, "y": 2.5 * size["height"] / 9})
    found = re.fullmatch(
        r"“saw” attends to “cat”, number 2 of 4: q × k = (\S+) × (\S+) = (\S+)", reading(page)
    )
    heads = inputs.observation.layers[0]
    query, key = float(heads.query[0, SAW, 1]), float(heads.key[0, 2, 1])
    expected = query, key, query * key
    assert [number(text) for text in found.groups()] == close(expected, within=0.05)
    for name, column in (("queries", 1), ("keys", 1), ("products of query and keys", 1)):
        mark = block(page, name).locator(".block-column")
        assert mark.is_visible()
        left = mark.bounding_box()["x"] - block(page, name).bounding_box()["x"]
        assert left == close(column * size["width"] / 4, within=1)
    assert not block(page, "values").is_visible()
    page.get_by_label("show the values").check()
    values = block(page, "values")
    size = values.bounding_box()
    values.hover(position={"x": size["width"] - 2, "y": 2})
    found = re.fullmatch(r"number 4 of 4 in the value of “\[CLS\]”: (\S+)", reading(page))
    expected = float(inputs.observation.layers[0].value[0, 0, 3])
    assert number(found[1]) == close(expected, within=0.05)


def test_keys_choose_keep_and_let_go(start, path):
    page = start(path)
    page.get_by_label("show the values").focus()
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert tokens(page).nth(1).evaluate("each => each === document.activeElement")
    assert not is_overview(page)
    page.keyboard.press("Enter")
    assert tokens(page).nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert reading(page).startswith("“the” attends to “the”, number 2 of 4")
    page.keyboard.press("Escape")
    assert is_overview(page)
    assert tokens(page).nth(1).get_attribute("aria-pressed") == "false"
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert reading(page).startswith("“the” attends to “the”")
    page.keyboard.press("Enter")
    assert tokens(page).nth(1).get_attribute("aria-pressed") == "true"


def test_another_layer_head_or_theme_is_drawn_anew(start, path, inputs):
    page = start(path)
    tokens(page).nth(SAW).click()
    key_scale = page.locator(".neuron-part", has_text="key k").locator(".block-scale")
    for group in ("Layer", "Head"):
        before, scale = pictures(page), key_scale.inner_text()
        page.get_by_role("group", name=group, exact=True).get_by_role("button", name="2").click()
        expect(key_scale).not_to_have_text(scale, use_inner_text=True)
        assert are_other(before, pictures(page))
    expected = (100 * inputs.observation.layers[1].weights[1, SAW]).tolist()
    assert shown_numbers(page, "softmax") == close(expected, within=0.6)
    before = pictures(page)
    page.get_by_role("button", name="dark").click()
    assert are_other(before, pictures(page))


def test_a_token_kept_in_another_view_is_shown(open_page, inputs, tmp_path):
    page = open_page(write_scene(tmp_path / "page.html", inputs, "heads", "neurons"))
    page.locator(".tokens-from button").nth(SAW).click()
    page.get_by_role("tab", name="Neurons").click()
    wait_until_drawn(page)
    assert not is_overview(page)
    assert tokens(page).nth(SAW).get_attribute("aria-pressed") == "true"


def test_a_long_text_and_a_head_that_is_switched_off_are_told(
    start, open_page, inspected, tmp_path
):
    inputs = observe(inspected, "cat " * 150)
    page = open_page(write_scene(tmp_path / "page.html", inputs, "neurons"))
    page.get_by_text("the text has 152 tokens").wait_for()
    assert page.locator("#view-neurons code").inner_text() == "--views neurons"
    inputs = observe(inspected, TEXT, without=(HeadName(1, 2),))
    page = start(write_scene(tmp_path / "off.html", inputs, "neurons"))
    told = "This head is switched off"
    assert told not in page.locator("#view-neurons").inner_text()
    page.get_by_role("group", name="Head", exact=True).get_by_role("button", name="2").click()
    assert told in page.locator("#view-neurons").inner_text()
