"""A view that a notebook shows works inside its frame, and reaches nothing outside of it."""

import pytest
from tests.unit.inference.small import save_small

from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings

HOSTILE = "the cat </script></iframe><img src=x onerror=alert(1)>\"'&quot; saw"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A page with two cells, each of which shows a view."""
    folder = tmp_path_factory.mktemp("notebook")
    save_small(folder / "small", max_position_embeddings=64)
    cells = [
        AttentionView.of(folder / "small", text, settings=ViewSettings(views="heads", token="cat"))
        for text in (HOSTILE, "a cat")
    ]
    body = "".join(f"<div>{cell._repr_html_()}</div>" for cell in cells)
    path = folder / "notebook.html"
    path.write_text(f"<!doctype html><title>notebook</title>{body}<p id=after>after", "utf-8")
    return path


def test_each_cell_shows_its_view(open_page, notebook):
    page = open_page(notebook)
    for number, text in enumerate((HOSTILE, "a cat")):
        frame = page.frame_locator("iframe").nth(number)
        frame.get_by_role("tab").first.wait_for()
        assert text in frame.locator("header").inner_text()
        assert frame.locator("img").count() == 0
    assert page.locator("#after").inner_text() == "after"


def test_a_frame_cannot_reach_the_notebook(open_page, notebook):
    page = open_page(notebook)
    frame = page.locator("iframe").first.element_handle().content_frame()
    frame.get_by_role("tab").first.wait_for()
    assert frame.evaluate("() => self.origin") == "null"
    reached = "() => { try { return parent.document.title; } catch (error) { return error.name; } }"
    assert frame.evaluate(reached) == "SecurityError"
