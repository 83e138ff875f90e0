"""Bundle JavaScript modules into one script, without a build tool.

Each module becomes a function, called after the modules that it imports; the function returns the
exports. Only the forms that our modules use are supported, each at the beginning of a line; all
others are errors:

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
    """Return one script that runs `start.js` and its dependencies, dependencies first.

    Args:
        sources: file names to source texts of the modules.
    """
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
                _check_exports(name, names, imported, sources[imported])
            ordered[name] = None

    visit(ENTRY, ())
    return list(ordered)


def _check_exports(name: str, names: str, imported: str, source: str) -> None:
    """Raise an error for a missing export, as a browser does for real modules."""
    wanted = {part.split(" as ")[0].strip() for part in names.split(",") if part.strip()}
    missing = wanted - set(_EXPORTED.findall(source))
    if missing:
        raise ValueError(f"{name} imports {min(missing)}, and {imported} doesn't export it")


def _wrap(name: str, source: str) -> str:
    """Wrap a module in a function that is called immediately."""
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
    """Return the statement that replaces an import; the number of lines stays the same."""
    names = found[1].replace(" as ", ": ")
    return f"const {{{names}}} = modules[{json.dumps(found[2])}];"
