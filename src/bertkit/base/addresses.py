"""Names of inputs and outputs: paths, or URLs, which hold no secrets."""

import re
from pathlib import Path

from bertkit.base.errors import SettingsError

# `pathlib` leaves one slash of two; a single letter is a drive of Windows.
URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/+(?P<rest>[^/].*)", re.DOTALL)
PASSWORD = re.compile(r"[^/]*:[^/]*@")  # at the beginning of what follows the scheme
SIGNATURE = re.compile(r"\?[\w.~%-]+=")  # a ? in a glob has no name and = behind it
SECRETS = re.compile(r"(?<=://)[^/\s]*@|(?<=:/)[^/\s]+@|(?<=\S)\?[\w.~%-]+=\S*")


def is_remote(name: object) -> bool:
    """Whether a path is a URL; paths of `pathlib` that were made of one count."""
    return isinstance(name, str | Path) and URL.fullmatch(str(name)) is not None


def to_url(name: str | Path) -> str:
    """Return the URL that a path was made of.

    Raises:
        SettingsError: it holds a password or a signature.
    """
    found = URL.fullmatch(str(name))
    assert found is not None
    if PASSWORD.match(found["rest"]) or SIGNATURE.search(found["rest"]):
        raise SettingsError(
            f"a URL of {found['scheme']}:// holds a password or a signature, which would be shown"
            " and recorded; leave it out, and give credentials as fsspec finds them: by environment"
            " variables or the service's own files"
        )
    return f"{found['scheme']}://{found['rest']}"


def show_address(path: Path) -> str:
    """Return a path for messages; of a URL, both slashes."""
    return to_url(path) if is_remote(path) else str(path)


def hide_secrets(message: str) -> str:
    """Leave passwords and signatures of URLs out of a message."""
    return SECRETS.sub("…", message)


def name_beside(path: Path, suffix: str) -> Path | None:
    """Return a path with a suffix to its name; None of a URL, beside which nothing can lie."""
    return None if is_remote(path) else path.with_name(f"{path.name}{suffix}")
