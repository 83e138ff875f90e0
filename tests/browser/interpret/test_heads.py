"""The head view in a real browser: what is drawn and written is what the model computed."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import PIXELS, observe, write_scene

LIMIT = "Draw lines of at least"
TEXT, PAIR = "the cat saw the hat .", "a dog lost a hat ."


@pytest.fixture(scope="module")
def inputs(inspected):
    return observe(inspected, TEXT, PAIR)


@pytest.fixture
def page(open_page, tmp_path, inputs):
    page = open_page(write_scene(tmp_path / "page.html", inputs, "heads"))
    page.locator(".head-lines canvas[aria-label]").wait_for()
    return page


def token(page, side, index):
    return page.locator(f".tokens-{side} .token").nth(index)


def table(page):
    """Token and its number, and the share of the first column, of each row."""
    return page.locator(".shares tbody tr").evaluate_all(
        "rows => rows.map((row) => [row.cells[0].innerText, row.cells[1].innerText])"
    )


def in_words(share):
    percent = 100 * float(share)
    if 0 < percent < 0.05:
        return "under 0.1 %"
    return "0 %" if percent == 0 else f"{percent:.1f} %"


def ranked(tokens, shares, count=3):
    order = sorted(range(len(tokens)), key=lambda index: -shares[index])
    return [f"{tokens[index]} {index + 1}" for index in order[:count]]


def num_lines(page):
    return int(page.locator("canvas").get_attribute("aria-label").split()[0].replace(",", ""))


def painted(page):
    """How many pixels of the drawing aren't empty."""
    return page.locator("canvas").evaluate(
        f"canvas => ({PIXELS})(canvas).filter((part, index) => index % 4 === 3 && part > 0).length"
    )


def test_numbers_of_a_token_are_those_of_the_model(page, inputs):
    mean, tokens = (
        inputs.observation.layers[0].weights.mean(dim=0),
        inputs.observation.encoded.tokens,
    )
    caption = page.locator(".shares caption")
    token(page, "from", 2).hover()
    page.get_by_text("cat (token 3) attends to, layer 1, 2 heads:").wait_for()
    assert [row[0] for row in table(page)[:3]] == ranked(tokens, mean[2].tolist())
    heard = page.locator("[aria-live=polite].for-ears").text_content()
    assert heard.startswith(f"cat attends to {tokens[int(mean[2].argmax())]} {table(page)[0][1]}")
    best = token(page, "to", int(mean[2].argmax()))
    assert best.locator(".token-share").inner_text().endswith(" %")
    token(page, "to", 2).hover()
    page.get_by_text("cat (token 3) is attended to by").wait_for()
    assert [row[0] for row in table(page)[:3]] == ranked(tokens, mean[:, 2].tolist())
    page.get_by_role("button", name="2", exact=True).first.click()  # the layer
    page.get_by_role("button", name="head 2").dblclick()
    token(page, "from", 5).click()
    page.locator(".shares").wait_for()
    weights = inputs.observation.layers[1].weights[1, 5].tolist()
    rows = table(page)
    assert [row[0] for row in rows[:3]] == ranked(tokens, weights)
    assert rows[0][1] == in_words(max(weights))
    assert "layer 2, head 2" in caption.inner_text()


def test_fewer_lines_for_one_token_and_none_painted_outside(page):
    whole, pixels = num_lines(page), painted(page)
    token(page, "from", 3).hover()
    page.locator(".shares").wait_for()
    assert 0 < num_lines(page) < whole
    assert 0 < painted(page) < pixels
    page.locator("h1").hover()
    page.locator(".shares").wait_for(state="detached")
    assert num_lines(page) == whole


def test_a_click_keeps_a_token_until_the_next_or_escape(page):
    token(page, "from", 3).click()
    page.locator("h1").hover()
    assert token(page, "from", 3).get_attribute("aria-pressed") == "true"
    assert page.locator(".shares").is_visible()
    token(page, "to", 4).click()
    assert page.locator(".token[aria-pressed=true]").count() == 1
    page.locator("h1").hover()
    assert "is attended to by" in page.locator(".shares caption").inner_text()
    token(page, "to", 4).click()
    page.locator("h1").hover()
    page.locator(".shares").wait_for(state="detached")
    token(page, "from", 1).click()
    page.keyboard.press("Escape")
    page.locator(".shares").wait_for(state="detached")


def test_arrows_enter_and_escape(page):
    page.get_by_label(LIMIT).focus()
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "[CLS]"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.get_by_text("cat (token 3) attends to").wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text("cat (token 3) is attended to by").wait_for()
    page.keyboard.press("Enter")
    assert token(page, "to", 2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowUp")
    page.get_by_text("the (token 2) is attended to by").wait_for()
    page.keyboard.press("Escape")
    page.locator(".shares").wait_for(state="detached")


def test_pairs_of_texts_leave_the_others_out(page, inputs):
    whole = num_lines(page)
    page.get_by_role("button", name="B→A").click()
    expect(page.locator("canvas")).not_to_have_attribute("aria-label", re.compile(f"^{whole} "))
    token(page, "from", 10).hover()
    page.locator(".shares").wait_for()
    assert len(table(page)) == 8  # the first text, [CLS] and [SEP]
    token(page, "from", 2).hover()
    page.get_by_text("cat (token 3) attends to").wait_for()
    assert table(page) == []


def test_the_limit_leaves_lines_out_and_says_so(page):
    slider = page.get_by_label(LIMIT)
    slider.press("Home")
    page.locator("output").get_by_text("0 %", exact=True).wait_for()
    whole = num_lines(page)
    slider.press("End")
    page.locator(".head-limit .quiet").get_by_text("weaker lines").wait_for()
    left = int(page.locator(".head-limit .quiet").inner_text().split()[0].replace(",", ""))
    assert num_lines(page) + left == whole


def test_a_token_is_kept_by_touch(open_page, tmp_path, inputs):
    path = write_scene(tmp_path / "touch.html", inputs, "heads")
    page = open_page(path, has_touch=True, viewport={"width": 400, "height": 800})
    page.locator(".head-lines canvas[aria-label]").wait_for()
    token(page, "from", 2).tap()
    page.get_by_text("cat (token 3) attends to").wait_for()
    token(page, "from", 2).tap()
    page.locator(".shares").wait_for(state="detached")


def test_512_tokens_can_be_used(open_page, tmp_path, inspected):
    text = " ".join(["the cat saw a dog , lost the hat and"] * 52)
    inputs = observe(inspected, " ".join(text.split()[:510]))
    assert len(inputs.observation.encoded.tokens) == 512
    page = open_page(write_scene(tmp_path / "long.html", inputs, "heads"))
    page.locator(".head-lines canvas[aria-label]").wait_for()
    assert page.locator(".tokens-from .token").count() == 512
    token(page, "from", 300).hover()
    page.get_by_text("(token 301) attends to").wait_for()
    assert "others" in table(page)[-1][0]
    page.get_by_label(LIMIT).press("Home")
    page.locator("h1").hover()
    page.locator(".shares").wait_for(state="detached")
    assert num_lines(page) <= 20_000
    assert "weaker lines" in page.locator(".head-limit").inner_text()
