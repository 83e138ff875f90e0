"""Write what follows from the commands, the functions and their settings.

python tools/write_reference.py            writes commands.md and config.md in docs/reference, and
                                           a keywords.pyi beside each room's functions
python tools/write_reference.py --check    fails when they aren't what it would write
"""

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from cyclopts import App
from cyclopts.argument import Argument
from pydantic.fields import FieldInfo

import bertkit
from bertkit.api.settings import list_fields, strip
from bertkit.base.settings import Settings
from bertkit.cli.app import build_app, list_commands
from bertkit.recipes.finetune.settings import FineTuneSettings, SeedsSettings
from bertkit.tasks.table import TASKS

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"

COMMANDS_INTRODUCTION = """# Commands

Every command takes `--config FILE.toml`, described in [the settings file](config.md), and `--help`.
That leaves out options that are rarely set; `--help-all` shows them, and this page has all of them.
Exit codes, signals and the standard streams are described in
[the command line](../guide/command-line.md).
"""

CONFIG_INTRODUCTION = """# The settings file

`--config FILE.toml` takes the flags of a command from a table with its name, those of
`bertkit finetune classify` from `[finetune.classify]`; flags on the command line win. Keys may be
spelled with `-` or `_`; a table or key that nothing reads is an error. What a command reads, such
as texts or folders without a flag, stays on the command line. Below are all keys with their
defaults; those without one are commented out.
"""

KEYWORDS_INTRODUCTION = """# Written by `make reference` from the settings that `takes` names.
"""
KEYWORDS_IMPORTS = {
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "Path": "from pathlib import Path",
    "Literal": "from typing import Literal",
    "TypedDict": "from typing import TypedDict\n",
    "FinetuneArguments": "from bertkit.api.training import FinetuneArguments\n",
}


def main(words: Sequence[str]) -> int:
    """Write all of them, or with `--check` say whether they are current."""
    commands = list_commands(build_app())
    pages = {
        REFERENCE / "commands.md": render_commands(commands),
        REFERENCE / "config.md": render_config(commands),
        **render_keywords(),
    }
    if "--check" in words:
        stale = [path.name for path, page in pages.items() if not is_current(path, page)]
        if stale:
            print(f"{', '.join(stale)} not current; run `make reference`")
        return 1 if stale else 0
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    return 0


def is_current(path: Path, page: str) -> bool:
    """Whether a file holds a page."""
    return path.is_file() and path.read_text(encoding="utf-8") == page


def render_commands(commands: Mapping[str, App]) -> str:
    """The page with a section and a table of flags for each command."""
    sections = (render_command(name, command) for name, command in commands.items())
    return "\n".join([COMMANDS_INTRODUCTION, *sections])


def render_command(name: str, command: App) -> str:
    """Text, examples and flags of one command."""
    text, examples = read_docstring(command)
    defaults = find_defaults(command)
    lines = [f"## bertkit {name}", "", text, ""]
    if examples:
        lines += ["```console", *(f"$ {example}" for example in examples), "```", ""]
    lines += ["| | takes | default | meaning |", "| --- | --- | --- | --- |"]
    for argument in list_arguments(command):
        is_flag = argument.name.startswith("--")
        shown = argument.name if is_flag else argument.name.lower()
        default = argument.parameter.show_default
        if not isinstance(default, str):
            default = describe_default(defaults[argument.name], argument.required)
        meaning = (argument.parameter.help or "").replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{shown}` | {describe_type(argument.hint)} | {default} | {meaning} |")
    return "\n".join([*lines, ""])


def read_docstring(command: App) -> tuple[str, list[str]]:
    """A command's text without its arguments, and the example calls in it."""
    docstring = inspect.getdoc(command.default_command) or ""
    text: list[str] = []
    examples: list[str] = []
    for line in docstring.partition("\nArgs:")[0].splitlines():
        if line.startswith("    "):
            examples.append(line.strip())
        elif line.strip(" *:") != "Examples" and (line or text[-1:] != [""]):
            text.append(line)
    return "\n".join(text).strip(), examples


def render_config(commands: Mapping[str, App]) -> str:
    """The page with a TOML file of all keys and their defaults."""
    lines = [CONFIG_INTRODUCTION, "```toml"]
    for name, command in commands.items():
        defaults = find_defaults(command)
        flags = [flag for flag in list_arguments(command) if flag.name.startswith("--")]
        lines.append(f"[{name.replace(' ', '.')}]")
        for flag in flags:
            key, default = flag.name.removeprefix("--"), defaults[flag.name]
            is_set = default is not None and default is not inspect.Parameter.empty
            is_set = is_set and not isinstance(default, DependsOn)
            lines.append(f"{key} = {to_toml(default)}" if is_set else f"# {key} =")
        lines.append("")
    return "\n".join([*lines[:-1], "```", ""])


def list_arguments(command: App) -> list[Argument]:
    """The arguments that a user can give, in the order of the signature."""
    arguments = command.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in arguments if argument.show]


class DependsOn(NamedTuple):
    """In place of a default that isn't one value."""

    setting: str


def find_defaults(command: App) -> dict[str, Any]:
    """Defaults by flag: those of the settings object that the command has as its own default."""
    chosen: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for argument in command.assemble_argument_collection():
        default = argument.field_info.default
        if isinstance(default, Settings):
            chosen |= dict(default)
            for field, info in type(default).model_fields.items():
                if isinstance(extra := info.json_schema_extra, dict):
                    chosen[field] = DependsOn(str(extra["depends_on"]))
        else:
            defaults[argument.name] = chosen.get(argument.field_info.name, default)
    return defaults


def describe_default(default: Any, is_required: bool) -> str:
    """A table cell for a default."""
    if is_required:
        return "required"
    if default is None or default is inspect.Parameter.empty:
        return ""
    if isinstance(default, DependsOn):
        return f"by `--{default.setting}`"
    return f"`{to_toml(default)}`"


def to_toml(value: Any) -> str:
    """A value as TOML spells it, which for these types is as JSON does."""
    if isinstance(value, Enum):
        value = value.value
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def describe_type(hint: Any) -> str:
    """A table cell for what a flag takes."""
    origin, parts = get_origin(hint), [part for part in get_args(hint) if part is not NoneType]
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in {list, tuple}:
        return f"{describe_type(parts[0])} …"
    if parts:
        return " or ".join(describe_type(part) for part in parts)
    names = {str: "text", Path: "path", bool: "switch", float: "number", int: "whole number"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def render_keywords() -> dict[Path, str]:
    """For each folder with public functions, the types of the settings that they take."""
    classes: dict[Path, list[str]] = {}
    for name in bertkit.__all__:
        function = getattr(bertkit, name)
        if not (kinds := getattr(function, "settings_kinds", ())):
            continue
        page = Path(inspect.getfile(inspect.unwrap(function))).with_name("keywords.pyi")
        found = classes.setdefault(page, [])
        if name != "finetune":
            words = name.title().replace("_", "")
            found.append(render_class(words, list_fields(kinds), "TypedDict"))
            continue
        # A class for each task, on one with what all have.
        common = list_fields((FineTuneSettings, SeedsSettings))
        found.append(render_class("Finetune", common, "FinetuneArguments"))
        for task, entry in TASKS.items():
            words = f"Finetune{task.title()}" if task in bertkit.__all__ else task.title()
            found.append(render_class(words, list_fields([entry.settings]), "FinetuneKeywords"))
    return {page: render_module(found) for page, found in classes.items()}


def render_module(classes: Sequence[str]) -> str:
    """A module of such classes, with what it imports."""
    text = "\n\n".join(classes)
    imports = [line for name, line in KEYWORDS_IMPORTS.items() if name in text]
    return "\n".join([KEYWORDS_INTRODUCTION, *imports, "", text, ""])


def render_class(name: str, fields: Mapping[str, FieldInfo], base: str) -> str:
    """A class of keyword arguments, whose defaults stand in comments."""
    lines = [f"class {name}Keywords({base}, total=False):"]
    for field, info in fields.items():
        extra = info.json_schema_extra
        default = f"by {extra['depends_on']}" if isinstance(extra, dict) else repr(info.default)
        lines.append(f"    {field}: {render_type(strip(info.annotation))}  # {default}")
    return "\n".join(lines)


def render_type(kind: Any) -> str:
    """A type as Python spells it; lists may be given for tuples, and strings for paths."""
    kind = strip(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin in {Union, UnionType}:
        return " | ".join(dict.fromkeys(" | ".join(map(render_type, parts)).split(" | ")))
    if parts:
        name = "Sequence" if origin is tuple else origin.__name__
        types = [render_type(part) for part in parts if part is not ...]
        return f"{name}[{', '.join(dict.fromkeys(types) if origin is tuple else types)}]"
    return str({NoneType: "None", Path: "str | Path"}.get(kind, kind.__name__))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
