"""A real browser in which pages are opened, and which fails on any complaint."""

from pathlib import Path
from typing import Any

import pytest
from tests.chromium import FLAGS, find_chromium

TIMEOUT_MILLISECONDS = 60_000  # what is waited for comes in less than one second
# One test a kind of page, which `make test` runs; `make test-slow` runs the others.
KEPT = {
    "test_every_view_shows_what_the_model_computed",
    "test_the_policy_forbids_requests_and_other_scripts",
    "test_each_cell_shows_its_view",
    "test_every_view_of_every_part_is_drawn",
    "test_blanks_have_bars",
    "test_rows_are_decided_by_keys_alone",
}
SIZE = {"width": 1280, "height": 900}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of pages as exhaustive, but for those kept."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.name not in KEPT:
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="module")  # while it is there, its event loop runs in the tests' thread
def browser():
    """Chromium, without a window."""
    path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium: install the package chromium, or name it in BERTKIT_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=TIMEOUT_MILLISECONDS)
        browser = driver.chromium.launch(
            executable_path=path, args=FLAGS, timeout=TIMEOUT_MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """`open_page(place, script=None, **options)`: a page from disk or a server, as a `Page`.

    The script runs before those of the page. Options are those of a browser context:
    `color_scheme`, `viewport`, `has_touch`, and so on. At the end of the test no page has
    complained, and none has asked for anything but its own file or server; `open_page.complaints`
    is the list, from which a test takes what it expects. Wait by `expect` and locators: what
    `wait_for_function` evaluates again and again is forbidden by the pages' policy.
    """
    contexts, complaints = [], []

    def open_path(place: Path | str, script: str | None = None, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": SIZE, **options})
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        contexts.append(context)
        if script is not None:
            context.add_init_script(script)
        page = context.new_page()
        url = place if isinstance(place, str) else place.resolve().as_uri()

        def watch(asked: str) -> None:
            is_own = asked.startswith(url) if isinstance(place, str) else asked == url
            if not is_own:
                complaints.append(f"asks for {asked}")

        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda ask: watch(ask.url))
        page.goto(url)
        return page

    open_path.complaints = complaints
    yield open_path
    for context in contexts:
        context.close()
    assert complaints == []
