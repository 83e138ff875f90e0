"""How Chromium is found, and started without a window and quiet on the network."""

import os
import shutil

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """What BERTKIT_CHROMIUM names, or the one on the path."""
    return os.environ.get("BERTKIT_CHROMIUM") or shutil.which("chromium")
