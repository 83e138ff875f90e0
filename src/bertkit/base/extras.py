"""How the packages of an extra are installed, for messages that one is missing."""

import json
import re
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
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
    clone = _find_clone(installed)
    if clone is not None:
        return f"pip install '.[{extra}]' in {clone}"
    return shlex.join(["pip", "install", *_list_requirements(installed, extra)])


def _find_clone(installed: Distribution) -> Path | None:
    """Return the folder that bertkit was installed from; None if it is gone, or was no folder."""
    # Source: https://packaging.python.org/en/latest/specifications/direct-url/
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = urlsplit(str(origin.get("url", "")))
    folder = Path(unquote(url.path))
    is_clone = url.scheme == "file" and (folder / "pyproject.toml").is_file()
    return folder if is_clone else None


def _list_requirements(installed: Distribution, extra: str) -> list[str]:
    """Return the packages of an extra with their versions, as the metadata has them."""
    listed = (line.partition(";") for line in installed.requires or ())
    return [
        requirement.strip()
        for requirement, _, marker in listed
        if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", marker)
        and not (sys.platform == WINDOWS and f"!= '{WINDOWS}'" in marker.replace('"', "'"))
    ]
