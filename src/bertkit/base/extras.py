"""Packages of extras: whether they are there, and how they are installed."""

import json
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from bertkit.base.errors import MissingExtraError

WINDOWS = "win32"


class OptionalPackage(NamedTuple):
    """A package that a plain installation lacks."""

    name: str  # as people know it
    extra: str  # which brings it


# By module. What else an extra brings is named where it is used, since it is used in one place.
PACKAGES = {
    "pyarrow": OptionalPackage("PyArrow", "arrow"),
    "torch": OptionalPackage("PyTorch", "train"),
    "zstandard": OptionalPackage("zstandard", "zstd"),
}


def require_torch(what: str) -> None:
    """Raise MissingExtraError if PyTorch isn't installed; it isn't loaded."""
    require_package("torch", what)


def require_package(module: str, what: str) -> None:
    """Check that a package of `PACKAGES` is installed, without loading it.

    Args:
        what: what needs it, as the subject of a sentence.

    Raises:
        MissingExtraError: it isn't; the message has the command that installs it.
    """
    if not has_package(module):
        raise MissingExtraError(describe_missing(module, what))


def has_package(module: str) -> bool:
    """Return whether a package is installed, without loading it."""
    try:
        return find_spec(module) is not None
    except ImportError:  # a finder refuses it
        return False


def describe_missing(module: str, what: str = "this") -> str:
    """Describe a package of `PACKAGES` that isn't installed."""
    name, extra = PACKAGES[module]
    return f"{what} needs {name}, which isn't installed; {describe_install(extra)}"


def describe_install(extra: str) -> str:
    """Return the command that installs an extra of bertkit here.

    It is that of a clone if bertkit was installed from one that is still there, else it names the
    packages, since bertkit isn't on PyPI.
    """
    from importlib.metadata import PackageNotFoundError, distribution

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
