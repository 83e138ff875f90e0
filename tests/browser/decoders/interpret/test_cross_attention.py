"""An encoder-decoder in a real browser: three attentions, and how two texts are aligned."""

import pytest
import torch
from playwright.sync_api import expect
from tests.browser.interpret.scenes import HOSTILE
from tests.browser.interpret.test_heads import in_words
from tests.closeness import assert_close
from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder

from bertkit.decoders.inspected_model import InspectedEncoderDecoder
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings

READ, WRITTEN = "the cats saw a hat", "a dog lost ."
READ_TOKENS = ["[CLS]", "the", "cat", "##s", "saw", "a", "hat", "[SEP]"]
WRITTEN_TOKENS = ["[CLS]", "a", "dog", "lost", "."]
NEXT_TOKENS = [*WRITTEN_TOKENS[1:], "[SEP]"]
CROSS, ENCODER, DECODER = "from target to source", "within the source", "within the target"
ROUNDING = 0.004  # of a weight of a half in a page


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cross") / "small"
    save_encoder_decoder(folder, num_positions=96)
    return InspectedEncoderDecoder.load(folder)


@pytest.fixture(scope="module")
def view(inspected):
    return AttentionView.of(inspected, READ, WRITTEN)


@pytest.fixture(scope="module")
def path(view, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    view.write(path)
    return path


@pytest.fixture
def page(open_page, path):
    page = open_page(path)
    expect(page.locator(".alignment tbody th").first).to_have_text("a")
    return page


def shares(page):
    """What each square says of itself, from 0 to 1."""
    labels = page.locator(".alignment tbody td").evaluate_all(
        "cells => cells.map((cell) => cell.getAttribute('aria-label'))"
    )
    numbers = [float(label.split(": ")[-1].removesuffix(" %")) / 100 for label in labels]
    return torch.tensor(numbers).view(5, 8)


def choose(page, *names):
    for name in names:
        page.get_by_role("button", name=name, exact=True).first.click()


def open_tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def test_the_alignment_is_the_mean_of_all_heads_or_of_those_chosen(page, view):
    expected = torch.tensor(view.alignment().weights)
    assert_close(shares(page), expected, within=0.005 + ROUNDING)
    columns = page.locator(".alignment thead th").all_inner_texts()
    assert columns == READ_TOKENS
    rows = page.locator(".alignment tbody th")
    assert rows.all_inner_texts() == NEXT_TOKENS
    choose(page, "last word")
    expect(rows.first).to_have_text("[CLS]")
    assert rows.all_inner_texts() == WRITTEN_TOKENS
    choose(page, "3", "all")
    mean = view.weights(3).mean(dim=0)
    assert_close(shares(page), mean, within=0.005 + ROUNDING)
    page.get_by_role("button", name="head 2").dblclick()
    expect(page.get_by_role("button", name="head 1")).to_have_attribute("aria-pressed", "false")
    assert_close(shares(page), view.weights(3)[1], within=0.005 + ROUNDING)


def test_what_is_left_out_is_shared_out_anew(page, view):
    choose(page, "left out")
    whole = torch.tensor(view.alignment().weights)
    whole[:, [0, 7]] = 0
    expected = whole / whole.sum(dim=1, keepdim=True)
    assert_close(shares(page), expected, within=0.005 + 2 * ROUNDING)


def test_a_square_is_read_by_pointing_and_by_keys(page, view):
    cell = page.locator(".alignment tbody tr").nth(2).locator("td").nth(4)
    cell.hover()
    reading = page.locator(".alignment-reading")
    expect(reading).to_contain_text("After “dog”, predicting “lost”, it attends to “saw” (5): ")
    cell.focus()
    page.keyboard.press("ArrowRight")
    expect(reading).to_contain_text("attends to “a” (6)")
    page.keyboard.press("ArrowDown")
    expect(reading).to_contain_text("After “lost”, predicting “.”, it attends to “a” (6)")
    page.keyboard.press("Enter")
    expect(page.locator(".alignment-name").nth(3)).to_have_attribute("aria-pressed", "true")
    open_tab(page, "Heads")
    assert "lost (token 4) attends to" in page.locator(".shares caption").inner_text()


def test_each_part_has_its_views_and_keeps_its_state(page):
    tabs = page.get_by_role("tab")
    assert tabs.all_inner_texts() == ["Alignment", "Heads", "All heads", "Neurons"]
    choose(page, "3")
    choose(page, ENCODER)
    assert tabs.all_inner_texts() == ["Heads", "All heads", "Neurons", "Tokens", "Geometry"]
    expect(page.locator(".tokens-from .token-text")).to_have_text(READ_TOKENS)
    assert page.get_by_text("2 layers of 2 heads, 8 tokens.").is_visible()
    choose(page, "light / dark", CROSS)
    expect(page.locator("body")).to_have_css("background-color", "rgb(20, 24, 28)")
    assert page.get_by_role("button", name="3", exact=True).get_attribute("aria-pressed") == "true"
    ground = page.locator(".alignment tbody td").first.evaluate("td => td.style.backgroundColor")
    choose(page, "light / dark")
    other = page.locator(".alignment tbody td").first.evaluate("td => td.style.backgroundColor")
    assert ground != other


def test_every_view_of_every_part_is_drawn(page):
    for part in (CROSS, ENCODER, DECODER):
        choose(page, part)
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.locator("section.view:visible > *").first.wait_for()
    assert page.get_by_role("alert").count() == 0


def test_lines_go_from_what_is_written_to_what_is_read(page, view):
    open_tab(page, "Heads")
    page.locator(".head-lines canvas[aria-label]").wait_for()
    assert page.locator(".tokens-from .token-text").all_inner_texts() == WRITTEN_TOKENS
    assert page.locator(".tokens-to .token-text").all_inner_texts() == READ_TOKENS
    page.locator(".tokens-to .token").nth(7).hover()
    page.locator(".shares").wait_for()
    column = view.weights(view.start.layer)[view.start.head - 1, :, 7]
    first = page.locator(".shares tbody tr").first
    strongest = int(column.argmax())
    assert first.locator("td").first.inner_text() == f"{WRITTEN_TOKENS[strongest]} {strongest + 1}"
    assert first.locator("td").nth(1).inner_text() == in_words(column.max())


def test_keys_go_through_columns_of_different_lengths_and_what_is_read_has_no_query(page):
    open_tab(page, "Heads")
    focused = "() => document.activeElement.innerText.split('\\n')[0]"
    page.locator(".tokens-from .token").nth(4).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "."  # the last one of its side
    page.keyboard.press("ArrowRight")
    for name in READ_TOKENS[5:]:
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == name
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "."
    page.locator(".tokens-to .token").nth(7).click()  # there is no such token that is written
    open_tab(page, "Neurons")
    expect(page.get_by_text("Choose a token on the left to see")).to_be_visible()
    assert page.locator("button.neuron-token[aria-pressed=true]").count() == 0
    page.locator("button.neuron-token").nth(2).click()
    expect(page.get_by_text("Point at a column, or tap it")).to_be_visible()


def test_left_to_right_what_stands_behind_has_no_score(page):
    choose(page, DECODER)
    open_tab(page, "Neurons")
    page.locator("button.neuron-token").nth(2).click()
    scores = page.locator(".neuron-part", has_text="scoreq").or_(
        page.locator(".neuron-part", has_text="√")
    )
    assert scores.last.locator(".neuron-figure").all_inner_texts()[3:] == ["–", "–"]
    block = page.get_by_label("products of query and keys; ").bounding_box()
    page.mouse.move(block["x"] + 5, block["y"] + block["height"] - 5)
    expect(page.locator(".said")).to_contain_text("“dog” doesn't see “.”, which comes after it")


def test_next_words_are_told_behind_each_token(page, view):
    choose(page, DECODER)
    open_tab(page, "Next words")
    rows = page.locator(".next-table tbody tr")
    assert rows.locator("th").all_inner_texts() == WRITTEN_TOKENS
    assert [text.split()[0] for text in rows.locator(".next-own").all_inner_texts()] == NEXT_TOKENS
    predicted = view.parts["decoder"].observation.predicted
    vocabulary = view.inputs.inspected.tokenizer.vocabulary
    best = [vocabulary[id_] for id_ in predicted.log_probabilities.argmax(dim=1).tolist()]
    first = rows.locator("td:nth-of-type(2) .words-word").all_inner_texts()
    assert first == best


def test_long_texts_are_drawn_without_names(open_page, inspected, tmp_path):
    view = AttentionView.of(inspected, "cat " * 70, "dog " * 70, ViewSettings(views="alignment"))
    view.write(tmp_path / "long.html")
    page = open_page(tmp_path / "long.html")
    grid = page.locator(".alignment-plain")
    expect(grid).to_have_attribute("width", "72")
    box = grid.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2)
    expect(page.locator(".alignment-reading")).to_contain_text(
        "After “[CLS]”, predicting “dog”, it attends to “[SEP]” (72): "
    )


def test_a_page_begins_where_it_is_told_and_hostile_texts_are_text(open_page, inspected, tmp_path):
    settings = ViewSettings(attention="decoder", layer=2, head=1, token="dog")
    AttentionView.of(inspected, HOSTILE, "a dog " + HOSTILE, settings).write(tmp_path / "p.html")
    page = open_page(tmp_path / "p.html", viewport={"width": 360, "height": 700})
    chip = page.get_by_role("button", name=DECODER)
    assert chip.get_attribute("aria-pressed") == "true"
    assert HOSTILE in page.locator("header").inner_text()
    assert "dog (token 3) attends to, layer 2, head 1:" in page.locator(".shares").inner_text()
    choose(page, CROSS)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
