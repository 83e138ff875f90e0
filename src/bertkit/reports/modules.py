"""JavaScript modules put into one script, without a build tool.

Each module becomes a function of its own, called after those that it imports; what it exports is
what the function returns. Only the forms that our modules use are read, each at the beginning of a
line, and everything else is refused:

    import { a, b as c } from "./name.js";
    export function | async function | const | class
"""

import json
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([^"\n]*)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
_UNREAD = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


ENTRY = "start.js"


def join_modules(sources: Mapping[str, str]) -> str:
    """One script that runs `start.js` and what it needs, each module after those that it imports.

    Args:
        sources: the text of each module under its file's name.
    """
    sources = {name: with_plain_lines(source) for name, source in sources.items()}
    parts = [_wrap(name, sources[name]) for name in _order(sources)]
    return "\n".join(['"use strict";', "const modules = {};", *parts, ""])


def with_plain_lines(text: str) -> str:
    """The text with the ends of lines that a browser gives it, before it computes a hash."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _order(sources: Mapping[str, str]) -> list[str]:
    """The names of the modules that are needed, each after those that it imports."""
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
                _check_exports(name, names, imported, sources[imported])
            ordered[name] = None

    visit(ENTRY, ())
    return list(ordered)


def _check_exports(name: str, names: str, imported: str, source: str) -> None:
    """Refuse what a browser would refuse of modules that it reads by itself."""
    wanted = {part.split(" as ")[0].strip() for part in names.split(",") if part.strip()}
    missing = wanted - set(_EXPORTED.findall(source))
    if missing:
        raise ValueError(f"{name} imports {min(missing)}, and {imported} doesn't export it")


def _wrap(name: str, source: str) -> str:
    """A module as a function that is called at once."""
    body = _EXPORT.sub("", _IMPORT.sub(_take_imports, source)).strip("\n")
    unread = _UNREAD.search(body) or _ENDS_SCRIPT.search(body)
    if unread is not None:
        raise ValueError(
            f"{name} holds {unread[0]!r:.80}; a module of a page has only"
            ' `import { … } from "./….js";` and `export function`, `const` or `class`, each at the'
            " beginning of a line, and neither </script nor <!--"
        )
    exported = ", ".join(_EXPORTED.findall(source))
    return f"modules[{json.dumps(name)}] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _take_imports(found: re.Match[str]) -> str:
    """The line by which a module takes what it imports; the number of lines stays."""
    names = found[1].replace(" as ", ": ")
    return f"const {{{names}}} = modules[{json.dumps(found[2])}];"
