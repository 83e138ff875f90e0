"""The mask view in a real browser: words of each place, seen or hidden, by mouse and by keys."""

import pytest
from tests.browser.interpret.scenes import observe, write_scene

from bertkit.interpret.views import attention as view_module

TEXT = "the cat [MASK] a hat ."


@pytest.fixture
def write(inspected, tmp_path):
    def write_text(text):
        inputs = observe(inspected, text)
        return write_scene(tmp_path / "page.html", inputs, "words", "tokens")

    return write_text


def rows(page):
    return page.locator(".words-table tbody tr")


def guesses(page, row):
    return rows(page).nth(row).locator(".words-word").all_inner_texts()


def token(page, row):
    return rows(page).nth(row).get_by_role("button")


def test_each_token_has_its_words_with_probabilities_but_a_mask_has_no_own(open_page, write):
    page = open_page(write(TEXT))
    assert rows(page).count() == 6
    assert token(page, 1).inner_text() == "cat"
    assert len(guesses(page, 1)) == 5
    shares = rows(page).nth(1).locator(".words-share").all_inner_texts()
    assert all(share.endswith(" %") for share in shares)
    assert "rank" in rows(page).nth(1).locator(".words-own").inner_text()
    assert page.locator(".words-table .is-mask").count() == 1
    assert "masked" in rows(page).nth(2).inner_text()
    bars = "els => els.map(e => e.style.inlineSize)"
    hidden = [rows(page).nth(row).locator(".words-bar").evaluate_all(bars) for row in (1, 2)]
    page.get_by_role("button", name="as read").click()
    read = [rows(page).nth(row).locator(".words-bar").evaluate_all(bars) for row in (1, 2)]
    assert hidden[0] != read[0]
    assert hidden[1] == read[1]


def test_a_token_is_chosen_by_click_and_by_keys_and_in_all_views(open_page, write):
    page = open_page(write(TEXT))
    token(page, 0).click()
    assert token(page, 0).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert token(page, 1).get_attribute("aria-pressed") == "true"
    assert token(page, 0).get_attribute("aria-pressed") == "false"
    page.get_by_role("tab", name="Tokens").click()
    page.get_by_role("tab", name="Words").click()
    assert rows(page).nth(1).get_attribute("class") == "is-chosen"
    token(page, 1).focus()
    page.keyboard.press("Escape")
    assert page.locator(".words-table .is-chosen").count() == 0


def test_a_long_text_says_why_nothing_is_hidden(open_page, write, monkeypatch):
    monkeypatch.setattr(view_module, "MAX_GUESSED_TOKENS", 3)
    page = open_page(write(TEXT))
    assert page.get_by_text("more than 3 tokens").is_visible()
    assert page.get_by_role("button", name="as read").count() == 0
    assert rows(page).count() == 6
