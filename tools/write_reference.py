"""Write what follows from the commands and their settings.

python tools/write_reference.py            writes docs/reference/commands.md and config.md
python tools/write_reference.py --check    fails when they aren't what it would write
"""

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from cyclopts import App
from cyclopts.argument import Argument

from bertkit.base.settings import Settings
from bertkit.cli.main import build_app, list_commands

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


def main(words: Sequence[str]) -> int:
    """Write both pages, or with `--check` say whether they are current."""
    commands = list_commands(build_app())
    pages = {
        REFERENCE / "commands.md": render_commands(commands),
        REFERENCE / "config.md": render_config(commands),
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
