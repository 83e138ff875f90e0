"""Take the pictures of attention views and of a review's page that README and guide show.

    python tools/take_pictures.py

The bundled model reads the guide's sentences and the examples' reviews, and Chromium opens the
pages. Needs Pillow, Playwright and Chromium (`apt install chromium`, or its path in
BERTKIT_CHROMIUM).
"""

import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from bertkit.checkpoints.bundled import find_bundled
from bertkit.cli.main import main as run
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
ANIMAL = "The animal didn't cross the street because it was too tired."
DOG = "The dog bit the man."
NUM_COLORS = 80  # a picture of flat colors needs no more, and is a third as large
# text, tab, color scheme, width and height in pixels, and the file
PICTURES = (
    (ANIMAL, "Heads", "light", 900, 592, "view-heads.png"),
    (ANIMAL, "Heads", "dark", 900, 592, "view-heads-dark.png"),
    (ANIMAL, "All heads", "light", 1180, 800, "view-all-heads.png"),
    (ANIMAL, "Neurons", "light", 1180, 545, "view-neurons.png"),
    (DOG, "Inputs", "light", 1000, 1262, "view-inputs.png"),
)
REVIEW = (1100, 560, "review-page.png")
LEFT_OUT = "header .quiet, .top, .legend, .controls, .options, .neuron-options, #view-neurons .said"


def main() -> None:
    """Write the pictures into docs/guide."""
    chromium = os.environ.get("BERTKIT_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("install Chromium, or name it in BERTKIT_CHROMIUM")
    settings = ViewSettings(views="heads,model,neurons,inputs,tokens")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser: Any = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for text, title, scheme, width, height, name in PICTURES:
            path = Path(folder) / "attention.html"
            AttentionView.of(find_bundled("vectors"), text, settings=settings).write(path)
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=1.6)
            page.goto(path.as_uri())
            (GUIDE / name).write_bytes(take_picture(page, title))
        width, height, name = REVIEW
        size = {"width": width, "height": height}
        page = browser.new_page(viewport=size, color_scheme="light", device_scale_factor=1.6)
        (GUIDE / name).write_bytes(take_review(page, Path(folder) / "review.html"))
        browser.close()


def take_picture(page: Any, title: str) -> bytes:
    """Open a tab, leave out what is around the picture, and return what is seen as a PNG."""
    page.get_by_role("tab", name=title, exact=True).click()
    page.evaluate(
        "names => document.querySelectorAll(names).forEach((node) => { node.hidden = true; })",
        LEFT_OUT,
    )
    return pack_picture(page)


def take_review(page: Any, path: Path) -> bytes:
    """Decide about two rows on the page of a review, and return what is seen as a PNG."""
    os.chdir(ROOT / "examples" / "data")
    run(["review", "reviews.csv", "--report", str(path)])
    page.goto(path.as_uri())
    page.locator(".card > p").first.wait_for()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    return pack_picture(page)


def pack_picture(page: Any) -> bytes:
    """Return what is seen as a PNG of few colors."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    packed = io.BytesIO()
    picture.quantize(NUM_COLORS, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main()
