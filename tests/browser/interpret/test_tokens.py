"""The token view in a real browser: who is looked at, and what each head does."""

import math

import pytest
import torch
from tests.browser.interpret.scenes import observe, write_scene
from tests.closeness import assert_close, close

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.patterns import find_patterns

TEXT = "the cats saw the hat ."


@pytest.fixture(scope="module")
def inputs(inspected):
    return observe(inspected, TEXT, without=(HeadName(2, 2),))


@pytest.fixture(scope="module")
def path(inputs, tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "page.html"
    return write_scene(file, inputs, "tokens", "heads")


def chips(page):
    return page.get_by_role("group", name="tokens").get_by_role("button")


def received(page):
    return [float(text) for text in page.locator(".received").all_inner_texts()]


def wait_for_token(page, number):
    """Wait until the details tell of a token, from 1."""
    page.locator(".details p", has_text=f"(token {number})").wait_for()


def wait_for_no_token(page):
    page.locator(".details", has_text="Choose a token").wait_for()


def cells(page):
    return page.locator(".pattern-grid button")


def show(page, name):
    page.get_by_role("group", name="Show").get_by_role("button", name=name, exact=True).click()


def weights(inputs, layers=(0,)):
    return torch.stack([inputs.observation.layers[layer].weights for layer in layers])


def patterns(inputs):
    found = [
        find_patterns(layer.weights, inputs.observation.encoded.tokens)
        for layer in inputs.observation.layers
    ]
    return [pattern for layer in found for pattern in layer]


def test_layers_and_heads_are_those_that_are_chosen(open_page, path, inputs):
    page = open_page(path)
    page.get_by_role("button", name="head 1", exact=True).click()
    second = weights(inputs)[0, 1].sum(dim=0)
    assert received(page) == close(second.tolist(), within=0.051)
    page.get_by_role("button", name="all layers").click()
    expected = weights(inputs, (0, 1))[:, 1].mean(dim=0).sum(dim=0)
    assert received(page) == close(expected.tolist(), within=0.051)


def test_a_chosen_token_tells_where_it_looks_and_who_looks_at_it(open_page, path, inputs):
    page = open_page(path)
    details = page.locator(".details")
    wait_for_no_token(page)
    chips(page).nth(2).hover()
    wait_for_token(page, 3)
    page.mouse.move(5, 5)
    wait_for_no_token(page)
    page.get_by_role("button", name="all layers").click()
    chips(page).nth(4).click()
    wait_for_token(page, 5)
    mean = weights(inputs, (0, 1)).mean(dim=(0, 1))
    for table, shares in ((0, mean[4]), (1, mean[:, 4])):
        rows = details.locator("table").nth(table).locator("tr")
        names = [text.split() for text in rows.locator("td:first-child").all_inner_texts()]
        places = [int(place) - 1 for _, place in names]
        assert [name for name, _ in names] == [
            inputs.observation.encoded.tokens[place] for place in places
        ]
        best = shares.topk(5).values
        assert_close(shares[places], best, within=0.01)
        found = rows.locator(".number").all_inner_texts()
        assert [float(text.removesuffix(" %")) for text in found] == close(
            (100 * best).tolist(), within=0.8
        )
    entropy = torch.special.entr(weights(inputs, (0, 1))[:, :, 4]).sum(dim=-1).mean()
    assert f"Its entropy is {entropy:.2f}" in details.inner_text()


def test_keys_go_through_tokens_and_heads(open_page, path):
    page = open_page(path)
    page.get_by_role("button", name="this layer").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    wait_for_token(page, 3)
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    wait_for_token(page, 9)
    assert chips(page).nth(2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert chips(page).nth(2).get_attribute("aria-pressed") == "false"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.get_by_role("tab", name="Heads").get_attribute("aria-selected") == "true"
    layer = page.get_by_role("group", name="Layer").locator("[aria-pressed=true]")
    assert layer.inner_text() == "2"
    page.get_by_role("tab", name="Tokens").click()
    assert page.locator(".pattern-grid [aria-current=true]").count() == 1


def test_each_head_has_its_pattern(open_page, path, inputs):
    page = open_page(path)
    names = [text.split("\n")[0] for text in cells(page).all_inner_texts()]
    assert names == [pattern.name for pattern in patterns(inputs)]
    title = cells(page).last.get_attribute("title")
    assert title.startswith("Head 2.2 (switched off): ")
    assert "off" in cells(page).last.get_attribute("class")


def test_entropies_are_those_of_the_chosen_token_or_of_all(open_page, path, inputs):
    page = open_page(path)
    show(page, "entropy")
    shown = [text.split("\n") for text in cells(page).all_inner_texts()]
    assert [float(first) for first, _ in shown] == close(
        [each.entropy for each in patterns(inputs)], within=0.0051
    )
    assert all(
        second == f"as {math.exp(each.entropy):.1f}"
        for (_, second), each in zip(shown, patterns(inputs), strict=True)
    )
    chips(page).nth(4).click()
    entropies = torch.special.entr(weights(inputs, (0, 1))[:, :, 4]).sum(dim=-1).flatten()
    shown = [float(text.split("\n")[0]) for text in cells(page).all_inner_texts()]
    assert shown == close(entropies.tolist(), within=0.0061)
