"""Write what follows from the commands, the functions and their settings.

python tools/write_reference.py            writes docs/reference/commands.md and config.md, and
                                           the signatures in src/bertkit/api/typed.pyi
python tools/write_reference.py --check    fails when they aren't what it would write
"""

import inspect
import json
import re
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_overloads

from cyclopts import App
from cyclopts.argument import Argument

import bertkit
from bertkit.api import training, vectors
from bertkit.api.inputs import SeveralTexts
from bertkit.api.settings import add_fields
from bertkit.base.settings import Settings
from bertkit.cli.main import build_app, list_commands
from bertkit.data.tables.rows import Table
from bertkit.inference.embeddings.embedder import Vectors
from bertkit.inference.embeddings.similarity import Rows
from bertkit.recipes.finetune.settings import FineTuneSettings, GridSearchSettings
from bertkit.recipes.seq2seq.settings import KINDS
from bertkit.tasks.table import TASKS
from bertkit.training.log import OnEvent

TRAINING_KINDS: tuple[type[Settings], ...] = (FineTuneSettings, GridSearchSettings)
ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
TYPED = ROOT / "src" / "bertkit" / "api" / "typed.pyi"

# Types that signatures call by their names.
ALIASES: dict[str, dict[str, Any]] = {
    "bertkit.training.log": {"OnEvent": OnEvent},
    "bertkit.api.inputs": {"SeveralTexts": SeveralTexts},
    "bertkit.data.tables.rows": {"Table": Table},
    "bertkit.inference.embeddings.similarity": {"Rows": Rows},
    "bertkit.api.training": {"Texts": training.Texts},
    "bertkit.api.vectors": {"Model": vectors.Model},
    "bertkit.inference.embeddings.embedder": {"Vectors": Vectors},
}
TYPED_INTRODUCTION = """# Signatures of the functions of `import bertkit`, for editors and checkers.
# Written by tools/write_reference.py; don't edit.
"""

COMMANDS_INTRODUCTION = """# Commands

Every command takes `--config FILE.toml`, described in [the settings file](config.md), and `--help`.
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
        TYPED: render_signatures(),
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


def render_signatures() -> str:
    """A stub file with the signatures of the functions that `bertkit` has itself."""
    functions = {name: getattr(bertkit, name) for name in bertkit.__all__}
    stubs = []
    for name, function in functions.items():
        if inspect.isfunction(function):
            whole, overloads = inspect.signature(function), get_overloads(function)
            kinds = [narrow(function, one) for one in overloads] or [whole]
            mark = "@overload\n" if overloads else ""
            stubs += [mark + render_signature(name, kind) for kind in kinds]
    text = "\n".join(stubs)
    homes = set(re.findall(r"\b(bertkit(?:\.[a-z_0-9]+)+)\.[A-Z]", text))
    homes |= {"collections.abc", "pathlib", "typing"}
    aliases = [f"from {home} import {name}" for home, names in ALIASES.items() for name in names]
    imports = [
        *(f"import {home}" for home in sorted(homes)),
        "from typing import Any, Literal, Optional, Union, overload",
        *aliases,
    ]
    return "\n".join([TYPED_INTRODUCTION, *imports, "", text])


def narrow(function: Any, part: Any) -> inspect.Signature:
    """The signature of an overload, with all parameters of the whole function."""
    whole, own = inspect.signature(function), inspect.signature(part)
    if "task" in own.parameters:  # one task hasn't the settings of the others
        names = get_args(own.parameters["task"].annotation) or tuple(TASKS)
        code = inspect.unwrap(function).__code__
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        parameters = [whole.parameters[name] for name in named]
        whole = whole.replace(parameters=add_fields(parameters, list_kinds(names)))
    parameters = [
        parameter.replace(
            annotation=own.parameters[name].annotation, default=own.parameters[name].default
        )
        if name in own.parameters
        else parameter
        for name, parameter in whole.parameters.items()
    ]
    return whole.replace(parameters=parameters, return_annotation=own.return_annotation)


def list_kinds(tasks: Sequence[str]) -> list[type[Settings]]:
    """The settings of tasks, those of training first."""
    if tasks[0] in KINDS:
        return [KINDS[name].settings for name in tasks]
    return [*TRAINING_KINDS, *(TASKS[name].settings for name in tasks)]


def render_signature(name: str, signature: inspect.Signature) -> str:
    """A function of a stub file, a line a parameter."""
    lines, is_keyword = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            lines.append("    *,")
        shown = f"{parameter.name}: {render_type(parameter.annotation)}"
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            is_keyword, shown = True, f"*{shown}"
        if parameter.default is not inspect.Parameter.empty:
            shown += f" = {parameter.default!r}"
        lines.append(f"    {shown},")
    returned = render_type(signature.return_annotation)
    return "\n".join([f"def {name}(", *lines, f") -> {returned}: ...", ""])


def render_type(annotation: Any) -> str:
    """A type, with aliases by their names."""
    text = inspect.formatannotation(annotation)
    for aliases in ALIASES.values():
        for name, alias in aliases.items():
            text = text.replace(inspect.formatannotation(alias), name)
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
