"""How the packages of an extra are installed, for messages that one is missing."""

import json
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

WINDOWS = "win32"


def describe_install(extra: str) -> str:
    """Return the command that installs an extra of bertkit here.

    It is that of a clone if bertkit was installed from one that is still there, else it names the
    packages, since bertkit isn't on PyPI.
    """
    try:
        installed = distribution("bertkit")
    except PackageNotFoundError:  # run from its sources
        return f"pip install '.[{extra}]' in a clone of bertkit"
    # Source: https://packaging.python.org/en/latest/specifications/direct-url/
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = urlsplit(str(origin.get("url", "")))
    clone = Path(unquote(url.path))
    if url.scheme == "file" and (clone / "pyproject.toml").is_file():
        return f"pip install '.[{extra}]' in {clone}"
    listed = (line.partition(";") for line in installed.requires or ())
    packages = [
        requirement.strip()
        for requirement, _, marker in listed
        if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", marker)
        and not (sys.platform == WINDOWS and f"!= '{WINDOWS}'" in marker.replace('"', "'"))
    ]
    return shlex.join(["pip", "install", *packages])
