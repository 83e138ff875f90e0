"""Take the pictures of attention views that the guide shows.

    python tools/take_pictures.py all-MiniLM-L6-v2/

The model reads the guide's sentence, and Chromium opens the page. Needs Playwright and Chromium
(`apt install chromium`, or its path in BERTKIT_CHROMIUM).
"""

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.settings import ViewSettings

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
SENTENCE = "The animal didn't cross the street because it was too tired."
SETTINGS = ViewSettings(layer=4, head=2, token="it")
PICTURES = (("Heads", "light", 840), ("All heads", "dark", 800), ("Neurons", "light", 1000))


def main() -> None:
    """Write a PNG for each view into docs/guide."""
    chromium = os.environ.get("BERTKIT_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("install Chromium, or name it in BERTKIT_CHROMIUM")
    (model,) = sys.argv[1:]
    subject = replace(InspectedModel.load(model, "cpu"), name="all-MiniLM-L6-v2")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "attention.html"
        AttentionView.of(subject, SENTENCE, settings=SETTINGS).write(path)
        browser: Any = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for title, scheme, height in PICTURES:
            size = {"width": 1280, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=1.5)
            page.goto(path.as_uri())
            take_picture(page, title)
        browser.close()


def take_picture(page: Any, title: str) -> None:
    """Open a tab, and write what is seen."""
    page.get_by_role("tab", name=title, exact=True).click()
    page.wait_for_timeout(1000)
    name = title.lower().replace(" ", "-")
    page.screenshot(path=GUIDE / f"view-{name}.png")


if __name__ == "__main__":
    main()
