"""The page around the views: tabs, controls, colors, and what it must not do."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import HOSTILE, observe, write_scene
from tests.closeness import close

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.reports.interactive import InteractivePage, page_modules, write_page

VIEWS = ("heads", "model", "neurons", "inputs", "tokens", "words", "importance", "geometry")
TEXT, PAIR = "the cat saw the hat .", "a dog lost a hat ."


@pytest.fixture(scope="module")
def pair_page(tmp_path_factory, inspected):
    path = tmp_path_factory.mktemp("pages") / "pair.html"
    return write_scene(path, observe(inspected, TEXT, PAIR))


def chip(page, group, name):
    return page.get_by_role("group", name=group, exact=True).get_by_role(
        "button", name=name, exact=True
    )


def pressed(page, group):
    chips = page.get_by_role("group", name=group, exact=True).locator("[aria-pressed=true]")
    return chips.all_inner_texts()


def test_every_view_shows_what_the_model_computed(open_page, tmp_path, inspected):
    inputs = observe(inspected, TEXT)
    page = open_page(write_scene(tmp_path / "all.html", inputs, *VIEWS))
    tokens, layer = inputs.observation.encoded.tokens, inputs.observation.layers[0]

    def open_view(name):
        page.get_by_role("tab", name=name, exact=True).click()
        view = page.locator("section.view:visible")
        view.locator("> *").first.wait_for()
        return view

    heads = open_view("Heads")
    heads.locator("canvas[aria-label]").wait_for()
    assert heads.locator(".tokens-from .token-text").all_inner_texts() == tokens
    patterns = [pattern.name for n in (1, 2) for pattern in inputs.observation.find_patterns(n)]
    assert open_view("All heads").locator(".model-cell").all_inner_texts() == patterns
    neurons = open_view("Neurons")
    neurons.locator("button.neuron-token").nth(2).click()
    shares = neurons.locator(".neuron-part", has_text="softmax").locator(".neuron-figure:visible")
    found = [float(text.removesuffix(" %")) for text in shares.all_inner_texts()]
    assert found == close((100 * layer.weights[0, 2]).tolist(), within=0.6)
    assert open_view("Inputs").get_by_label("token embeddings").is_visible()
    received = open_view("Tokens").locator(".received").all_inner_texts()
    expected = layer.weights.mean(dim=0).sum(dim=0).tolist()
    assert [float(text) for text in received] == close(expected, within=0.051)
    assert open_view("Words").locator(".words-table tbody tr").count() == len(tokens) - 2
    assert open_view("Importance").locator(".importance-cell").count() == 4
    marks = open_view("Geometry").locator(".plane-main .plane-mark:visible")
    assert marks.count() == len(tokens) - 2


def test_the_page_tells_what_it_shows_and_which_head_is_off(open_page, tmp_path, inspected):
    path = write_scene(tmp_path / "off.html", observe(inspected, TEXT, without=(HeadName(2, 1),)))
    page = open_page(path)
    assert page.title() == "Attention of small"
    assert page.locator("h1").inner_text() == "Attention of small"
    header = page.locator("header").inner_text()
    assert TEXT in header
    assert "2 layers of 2 heads, 8 tokens; heads that are switched off: 2.1" in header
    assert page.get_by_role("group", name="Texts").count() == 0
    off = chip(page, "Heads", "head 1, switched off")
    assert off.count() == 0
    chip(page, "Layer", "2").click()
    expect(off).to_have_css("text-decoration-line", "line-through")
    assert chip(page, "Heads", "head 2").count() == 1


def test_tabs_layers_and_heads_by_mouse_and_by_keys(open_page, pair_page):
    page = open_page(pair_page)
    assert page.get_by_role("tab", selected=True).inner_text() == "Heads"
    assert "Point at a token" in page.locator(".legend-text").inner_text()
    page.get_by_role("tab", name="All heads").click()
    assert page.get_by_role("tabpanel", name="All heads").is_visible()
    assert page.locator("#view-heads").is_hidden()
    assert "Each small picture" in page.locator(".legend-text").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", selected=True).inner_text() == "Heads"
    assert page.locator("#view-heads").is_visible()
    assert (pressed(page, "Layer"), pressed(page, "Heads")) == (["1"], ["1", "2"])
    chip(page, "Layer", "2").click()
    chip(page, "Heads", "head 1").click()
    assert (pressed(page, "Layer"), pressed(page, "Heads")) == (["2"], ["2"])
    chip(page, "Heads", "head 2").click()
    assert pressed(page, "Heads") == ["2"], "the last head stays"
    chip(page, "Heads", "all").click()
    assert pressed(page, "Heads") == ["1", "2"]
    chip(page, "Heads", "head 1").dblclick()
    assert pressed(page, "Heads") == ["1"]
    chip(page, "Heads", "head 2").press("Shift+Enter")
    assert pressed(page, "Heads") == ["2"]


def test_hostile_text_stays_text(open_page, tmp_path, inspected):
    hostile = InspectedModel(HOSTILE, inspected.model, inspected.tokenizer)
    path = write_scene(tmp_path / "hostile.html", observe(hostile, HOSTILE, HOSTILE), *VIEWS)
    page = open_page(path)
    page.locator(".token").first.wait_for()
    assert page.locator("h1").inner_text() == f"Attention of {HOSTILE}"
    assert page.locator(".passage").all_inner_texts() == [f"A{HOSTILE}", f"B{HOSTILE}"]
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.locator("section.view:visible > *").first.wait_for()
        assert page.locator("img").count() == 0


def test_the_policy_forbids_requests_and_other_scripts(open_page, pair_page):
    page = open_page(pair_page)
    page.locator(".token").first.wait_for()
    refused = page.evaluate("fetch('https://example.org').then(() => 'came', () => 'refused')")
    assert refused == "refused"
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " { textContent: 'window.ran = true' }))"
    )
    assert page.evaluate("window.ran") is None
    complaints = open_page.complaints
    assert any("example.org" in complaint for complaint in complaints)
    assert any("inline" in complaint for complaint in complaints)
    assert all("Content Security Policy" in complaint for complaint in complaints)
    complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_follow_the_reader_and_the_button_and_paper_is_light(open_page, pair_page, scheme):
    page = open_page(pair_page, color_scheme=scheme)
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}
    other = "dark" if scheme == "light" else "light"

    def wait_for(name):
        expect(page.locator("body")).to_have_css("background-color", grounds[name])

    wait_for(scheme)
    page.get_by_role("button", name="light / dark").click()
    wait_for(other)
    page.get_by_role("button", name="light / dark").click()
    page.emulate_media(color_scheme=other)
    wait_for(other)
    page.evaluate(
        "addEventListener('beforeprint',"
        " () => { window.printed = document.documentElement.dataset.theme; })"
    )
    assert page.pdf()[:5] == b"%PDF-"
    assert page.evaluate("window.printed") == "light"
    assert page.evaluate("document.documentElement.dataset.theme") == other


def test_a_browser_without_scripts_or_an_old_one_is_told(open_page, pair_page):
    page = open_page(pair_page, java_script_enabled=False)
    assert "Nothing is shown without them" in re.sub(r"\s+", " ", page.inner_text("noscript"))
    page = open_page(pair_page, script="delete window.DecompressionStream;")
    assert "too old" in page.get_by_role("alert").inner_text()
    assert page.get_by_role("tab").count() == 0


def test_a_view_that_fails_says_so_and_the_others_go_on(open_page, tmp_path):
    start = """import { start } from "./frame.js";
const view = (name, mount) => ({ name, controls: [], mount });
start([
  view("broken", () => { throw new Error("no numbers"); }),
  view("whole", (root) => root.append("works")),
]);
"""
    views = [
        {"name": name, "title": name, "heading": name, "legend": ["-"], "data": {}}
        for name in ("broken", "whole")
    ]
    chosen = {"layer": 1, "heads": [1], "head": 1, "token": None, "side": "from", "pairs": "all"}
    model = {"name": "none", "layers": 1, "heads": 1, "features": 1}
    data = {"model": model, "texts": ["", None], "start": chosen, "views": views}
    data |= {name: [] for name in ("tokens", "patterns", "without")}
    page = InteractivePage("Title", {**page_modules(), "start.js": start}, [], data, {})
    write_page(tmp_path / "page.html", page)
    opened = open_page(tmp_path / "page.html")
    assert opened.get_by_role("alert").inner_text() == "This view can't be drawn: no numbers"
    opened.get_by_role("tab", name="whole").click()
    assert opened.locator("#view-whole").inner_text() == "works"
    assert [complaint.splitlines()[0] for complaint in open_page.complaints] == [
        "error: no numbers"
    ]
    open_page.complaints.clear()


def test_words_that_never_end_stay_in_the_page(open_page, tmp_path, inspected):
    name = "name" * 25_000
    long = InspectedModel(name, inspected.model, inspected.tokenizer)
    path = write_scene(tmp_path / "long.html", observe(long, "cat " + name, name), *VIEWS)
    page = open_page(path, viewport={"width": 900, "height": 700})
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.locator("section.view:visible > *").first.wait_for()
        page.locator("section.view:visible").evaluate("(view, text) => view.append(text)", name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 900


def test_a_narrow_window_has_everything(open_page, tmp_path, inspected):
    path = write_scene(tmp_path / "narrow.html", observe(inspected, TEXT), "heads", "inputs")
    page = open_page(path, viewport={"width": 360, "height": 700})
    page.locator(".token").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.get_by_role("button", name="all", exact=True).bounding_box()["x"] < 330
    page.get_by_role("tab", name="Inputs").click()
    wide = page.locator(".scroll", has=page.locator(".neuron-table"))
    wide.evaluate("box => box.style.setProperty('width', '150px')")
    expect(wide).to_have_class("scroll goes-on")
    wide.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    expect(wide).to_have_class("scroll")
    assert page.locator(".legend").is_visible()
