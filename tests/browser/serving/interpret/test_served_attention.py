"""The heads that the page of a server draws, in a real browser."""

from playwright.sync_api import expect
from tests.browser.serving.asking import ask, choose, percent

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import choose_start
from bertkit.interpret.views.view import ViewInputs


def test_heads_are_those_of_the_model(page, models):
    choose(page, "words", "Attention")
    result = ask(page, text="the cat saw", second="")
    result.locator("canvas[aria-label]").wait_for()
    inspected = InspectedModel.load(models["words"], "cpu")
    observed = inspected.observe(inspected.read("the cat saw"))
    tokens = result.locator(".tokens-from .token")
    assert result.locator(".tokens-from .token-text").all_inner_texts() == (observed.encoded.tokens)
    start = choose_start(ViewInputs(inspected, observed))
    opened = f"{observed.encoded.tokens[start.token]} (token {start.token + 1}) attends to"
    page.get_by_text(f"{opened}, layer {start.layer}, head {start.head}").wait_for()
    tokens.nth(start.token).click()  # then no token is chosen any longer
    for layer in (1, 2):
        chips = page.get_by_role("group", name="Layer", exact=True)
        chips.get_by_role("button", name=str(layer), exact=True).click()
        page.get_by_role("button", name="head 2").dblclick()
        tokens.nth(2).hover()
        page.get_by_text(f"cat (token 3) attends to, layer {layer}, head 2").wait_for()
        weights = sorted(observed.layers[layer - 1].weights[1, 2].tolist(), reverse=True)
        shown = result.locator(".shares tbody td.number").all_inner_texts()
        assert shown == [percent(one) for one in weights]
    page.get_by_role("button", name="light / dark").click()
    result.locator("canvas[aria-label]").wait_for()
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_layer_that_cannot_be_had_is_told_and_left(page, client, open_page):
    choose(page, "words", "Attention")
    result = ask(page, text="the cat saw")
    page.route("**/attention", lambda route: route.abort())
    chips = page.get_by_role("group", name="Layer", exact=True)
    chips.get_by_role("button", name="1", exact=True).click()
    expect(result.get_by_role("alert")).to_have_text("The server can't be reached.")
    expect(chips.get_by_role("button", name="2", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    assert ["ERR_FAILED" in open_page.complaints.pop()] == [True]
