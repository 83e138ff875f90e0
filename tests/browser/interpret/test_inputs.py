"""The inputs view in a real browser: its numbers are read where they are pointed at."""

import pytest
from playwright.sync_api import expect
from tests.browser.interpret.scenes import observe, write_scene
from tests.closeness import close

TEXT, PAIR = "the dog saw the hat", "a cat lost it ."


@pytest.fixture(scope="module")
def inputs(inspected):
    return observe(inspected, TEXT, PAIR)


@pytest.fixture
def page(open_page, tmp_path, inputs):
    return open_page(write_scene(tmp_path / "page.html", inputs, "inputs"))


def test_tokens_positions_and_segments_stand_beside_the_blocks(page, inputs):
    columns = page.locator(".neuron-table ol").all()
    tokens = inputs.observation.encoded.tokens
    found = [column.locator("li").all_inner_texts() for column in columns]
    assert found == [
        tokens,
        [str(place) for place in range(1, len(tokens) + 1)],
        ["AB"[segment] for segment in inputs.observation.encoded.encoding.token_type_ids],
    ]


def test_a_cell_is_read(page, inputs):
    block = page.get_by_label("token embeddings")
    box = block.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 2.5 * box["height"] / 13)
    embedding = inputs.inspected.model.encoder.embeddings.word.weight
    value = float(embedding[inputs.observation.encoded.encoding.ids[2], 0].detach())
    said = page.locator(".said")
    expect(said).to_contain_text("token embedding of “dog” (3), dimension 1 of ")
    shown = float(said.inner_text().split(": ")[-1].replace("−", "-"))
    assert shown == close(value, within=0.02)


def test_positions_are_read_and_swapped_words_told(page):
    page.get_by_label("Sines, cosine.").hover(position={"x": 2, "y": 2})
    expect(page.locator(".said")).to_have_text("Sines, cosine.: position 1, position 1: 1.00")
    assert page.get_by_role("heading", name="swapped").inner_text() == "“dog” and “hat” swapped"
    assert page.get_by_text("the hat saw the dog", exact=True).is_visible()
    rows = page.locator("#view-inputs tbody tr").all()
    assert [row.locator("td").nth(2).inner_text() for row in rows] == ["1.000"] * 3
