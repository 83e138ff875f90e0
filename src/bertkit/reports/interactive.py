"""A page that people can use: scripts, styles and data in one file that fetches nothing.

Its content security policy names the hashes of its one script and its one style sheet, and forbids
everything else. Data and arrays stand in elements that no browser runs: JSON in which nothing can
end its element, and base64.

Source: Content Security Policy Level 3, section 8 (hashes); WHATWG HTML, "data block".
"""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_file
from bertkit.reports.figures.svg import DARK, LIGHT
from bertkit.reports.modules import join_modules, with_plain_lines
from bertkit.reports.text import make_legible

ARRAY_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}", re.ASCII)
IN_MARKUP = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


@dataclass(frozen=True)
class InteractivePage:
    """What a page is made of.

    Attributes:
        title: of the window and at the top.
        modules: the text of each JavaScript module under its file's name, as `join_modules` takes
            them; `page_modules` are among them.
        styles: style sheets, beside those that every page has.
        data: what scripts find by `readData()`, as JSON.
        arrays: bytes that scripts find by `readBytes(name)` and that aren't unpacked before; their
            names are small letters, digits and hyphens.
    """

    title: str
    modules: Mapping[str, str]
    styles: Sequence[str]
    data: Any
    arrays: Mapping[str, bytes]

    def render(self) -> str:
        """The page as HTML; the same for the same content."""
        script = join_modules(self.modules)
        style = with_plain_lines("\n".join([_colors(), _read("page.css"), *self.styles]))
        if "</style" in style.lower():
            raise ValueError("a style sheet of a page can't hold </style")
        return Template(_read("page.html")).substitute(
            title=html.escape(make_legible(self.title)),
            policy=_policy(script, style),
            style=style,
            script=script,
            data=make_legible(_to_json(self.data)).translate(IN_MARKUP),
            arrays="\n".join(map(_array_element, self.arrays, self.arrays.values())),
        )


def page_modules() -> dict[str, str]:
    """The modules that every page has, under their files' names."""
    return read_modules(resources.files("bertkit.reports").joinpath("page"))


def read_modules(folder: Traversable) -> dict[str, str]:
    """All JavaScript modules of a folder, under their files' names in the order of the alphabet."""
    return _read_all(folder, ".js")


def read_styles(folder: Traversable) -> dict[str, str]:
    """All style sheets of a folder, under their files' names in the order of the alphabet."""
    return _read_all(folder, ".css")


def _read_all(folder: Traversable, suffix: str) -> dict[str, str]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    chosen = [file for file in files if file.name.endswith(suffix)]
    return {file.name: file.read_text(encoding="utf-8") for file in chosen}


def write_page(path: Path, page: InteractivePage) -> FileRecord:
    """Write the page, whole or not at all."""
    return write_file(path, page.render().encode())


def _read(name: str) -> str:
    return resources.files("bertkit.reports").joinpath("page", name).read_text(encoding="utf-8")


def _to_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _colors() -> str:
    """The colors as variables: as the reader's programs are, or as the page's button says."""
    light, dark = (
        " ".join(f"--{name}: {color};" for name, color in colors.items())
        for colors in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}'
    )


def _policy(script: str, style: str) -> str:
    """What the page may do: run this script, look like this, and nothing else."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _array_element(name: str, content: bytes) -> str:
    if not ARRAY_NAME.fullmatch(name):
        raise ValueError(f"the name of an array is small letters, digits and -, not {name!r:.80}")
    packed = base64.b64encode(zlib.compress(content)).decode()
    return f'<script type="application/octet-stream" id="array-{name}">{packed}</script>'
