"""Interactive pages: script, styles and data in one HTML file that fetches nothing.

The content security policy allows one script and one style sheet, by their hashes, and forbids
everything else; the page of a server may also ask that server. Data and arrays are in data blocks,
which browsers don't run: JSON with `<`, `>` and `&` escaped, so that it can't close its element,
and base64.

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
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_file
from bertkit.reports.figures.svg import DARK, LIGHT
from bertkit.reports.text import make_legible

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([^"\n]*)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
_UNREAD = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


ENTRY = "start.js"

# What scripts of a page read.
Json: TypeAlias = "str | float | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]


def join_modules(sources: Mapping[str, str]) -> str:
    """Return one script that runs `start.js` and its dependencies, dependencies first."""
    sources = {name: with_plain_lines(source) for name, source in sources.items()}
    parts = [_wrap(name, sources[name]) for name in _order(sources)]
    return "\n".join(['"use strict";', "const modules = {};", *parts, ""])


def with_plain_lines(text: str) -> str:
    """Normalize line ends to LF, as a browser does before it hashes a script or style sheet."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _order(sources: Mapping[str, str]) -> list[str]:
    """Return the names of the required modules, dependencies first."""
    ordered: dict[str, None] = {}

    def visit(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other: {' → '.join((*importers, name))}")
        if name not in sources:
            asking = importers[-1] if importers else "a page"
            raise ValueError(f"{asking} needs the module {name}, which isn't there")
        if name not in ordered:
            for names, imported in _IMPORT.findall(sources[name]):
                visit(imported, (*importers, name))
                wanted = {part.split(" as ")[0].strip() for part in names.split(",")} - {""}
                if missing := wanted - set(_EXPORTED.findall(sources[imported])):
                    raise ValueError(
                        f"{name} imports {min(missing)}, and {imported} doesn't export it"
                    )
            ordered[name] = None

    visit(ENTRY, ())
    return list(ordered)


def _wrap(name: str, source: str) -> str:
    """Wrap a module in a function that is called immediately."""

    def take(match: re.Match[str]) -> str:  # the number of lines stays the same
        return f"const {{{match[1].replace(' as ', ': ')}}} = modules[{json.dumps(match[2])}];"

    body = _EXPORT.sub("", _IMPORT.sub(take, source)).strip("\n")
    unread = _UNREAD.search(body) or _ENDS_SCRIPT.search(body)
    if unread is not None:
        raise ValueError(
            f"{name} holds {unread[0]!r:.80}; a module of a page has only"
            ' `import { … } from "./….js";` and `export function`, `const` or `class`, each at the'
            " beginning of a line, and neither </script nor <!--"
        )
    exported = ", ".join(_EXPORTED.findall(source))
    return f"modules[{json.dumps(name)}] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


ARRAY_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}", re.ASCII)
IN_MARKUP = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


@dataclass(frozen=True)
class InteractivePage:
    """The content of an interactive page.

    Attributes:
        modules: file names to source texts of the JavaScript modules, for `join_modules`; must
            include `page_modules()`.
        arrays: bytes that scripts read with `readBytes(name)`, decompressed only then; names
            consist of lowercase letters, digits and hyphens.
    """

    title: str  # of the window, also shown at the top of the page
    modules: Mapping[str, str]
    styles: Sequence[str]  # in addition to those that every page has
    data: Any  # that scripts read with `readData()`, as JSON
    arrays: Mapping[str, bytes]
    asks_server: bool = False  # whether scripts may send requests to the server of the page

    @cached_property
    def script(self) -> str:
        """The one script."""
        return join_modules(self.modules)

    @cached_property
    def style(self) -> str:
        """The one style sheet."""
        light, dark = (
            " ".join(f"--{name}: {color};" for name, color in colors.items())
            for colors in (LIGHT, DARK)
        )
        schemes = (
            f":root {{ color-scheme: light; {light} }}",
            f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}',
        )
        style = with_plain_lines("\n".join([*schemes, _read("page.css"), *self.styles]))
        if "</style" in style.lower():
            raise ValueError("a style sheet of a page can't hold </style")
        return style

    @property
    def policy(self) -> str:
        """The content security policy: only this script and this style sheet are allowed."""
        asked = " connect-src 'self';" if self.asks_server else ""
        return (
            f"default-src 'none'; script-src '{_hash(self.script)}';"
            f" style-src '{_hash(self.style)}';{asked} base-uri 'none'; form-action 'none'"
        )

    def render(self) -> str:
        """Render the page as HTML; the same content gives the same bytes."""
        arrays = []
        for name, content in self.arrays.items():
            if not ARRAY_NAME.fullmatch(name):
                raise ValueError(
                    f"the name of an array is small letters, digits and -, not {name!r:.80}"
                )
            packed = base64.b64encode(zlib.compress(content)).decode()
            kind = 'type="application/octet-stream"'
            arrays.append(f'<script {kind} id="array-{name}">{packed}</script>')
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return Template(_read("page.html")).substitute(
            title=html.escape(make_legible(self.title)),
            policy=self.policy,
            style=self.style,
            script=self.script,
            data=make_legible(data).translate(IN_MARKUP),
            arrays="\n".join(arrays),
        )


def page_modules() -> dict[str, str]:
    """Return the JavaScript modules that every page has, by file name."""
    return read_files(resources.files("bertkit.reports").joinpath("page"), ".js")


def read_files(folder: Traversable, suffix: str) -> dict[str, str]:
    """Read all files of a folder with a suffix, such as .js: name to text, sorted by name."""
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    chosen = [file for file in files if file.name.endswith(suffix)]
    return {file.name: file.read_text(encoding="utf-8") for file in chosen}


def write_page(path: Path, page: InteractivePage) -> FileRecord:
    """Write the page atomically."""
    return write_file(path, page.render().encode())


def _read(name: str) -> str:
    return resources.files("bertkit.reports").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
