"""Messages for command lines that can't be parsed, with the nearest option or command."""

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument
from pydantic import TypeAdapter, ValidationError

from bertkit.base.settings import describe_validation, find_near
from bertkit.cli.texts import MisspelledOptionError

MAX_LISTED = 12  # commands
# What other programs call it; shown if the command has the option.
OPTIONS_OF_OTHERS = {
    "eval-batch-size": "batch-size",
    "lr": "learning-rate",
    "max-seq-length": "max-length",
    "model-name-or-path": "model",
    "num-epochs": "epochs",
    "num-train-epochs": "epochs",
    "out": "output",
    "output-dir": "output",
    "per-device-train-batch-size": "batch-size",
    "train-file": "train",
    "validation-file": "dev",
}
TASKS_HINT = "each task has a command of its own, such as `bertkit classify`"
# What commands that people know from elsewhere are here.
COMMANDS_OF_OTHERS = {
    "encode": "`bertkit embed` turns texts into vectors",
    "ner": "`bertkit tag` finds entities, with a model of `bertkit finetune tag`",
    "predict": TASKS_HINT,
    "qa": "`bertkit answer` answers questions, with a model of `bertkit finetune answer`",
    "train": "`bertkit finetune` trains a model for a task, and `bertkit pretrain` one on raw text",
}


def describe_usage(error: CycloptsError, words: Sequence[str], flags: Collection[str]) -> str:
    """Describe in one line what is wrong; `flags` are those of the command."""
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return describe_validation(cause, are_flags=True)
    chain = " ".join(getattr(error, "command_chain", None) or ())
    if isinstance(cause, MisspelledOptionError):  # otherwise the message shows all the texts
        message = describe_option(str(cause), flags)
    elif isinstance(error, UnknownOptionError):
        message = describe_option(error.token.keyword or error.token.value, flags)
    elif isinstance(error, UnknownCommandError) and error.unused_tokens and error.app is not None:
        names = [name for name in error.app if not name.startswith("-")]
        message = describe_command(error.unused_tokens[0], chain, names)
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        message = describe_missing(error.argument, words, flags)
    elif isinstance(error, CoercionError) and error.argument is not None and error.token:
        message = describe_value(error.argument, error.token.value, error.target_type)
    elif isinstance(error, RepeatArgumentError):
        message = f"{error.token.keyword} is given twice; give it once"
    elif isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        message = f"{error.unused_tokens[0]!r} is an argument too many"
    else:
        message = str(error)
    return f"{message} (see `bertkit {chain} --help`)".replace("bertkit  ", "bertkit ")


def describe_value(argument: Argument, value: str, type_: Any) -> str:
    """Say what an argument must be, in the words that a setting has for it."""
    try:
        TypeAdapter(type_).validate_python(value)
    except ValidationError as error:
        return describe_validation(error).replace("the value", argument.name, 1)
    return f"{argument.name} can't be {value!r}"


def describe_missing(argument: Argument, words: Sequence[str], flags: Collection[str]) -> str:
    """Name an argument that is missing or has no value, or an option that may be meant for it."""
    names = argument.names or (argument.name,)
    if any(word.partition("=")[0] in names for word in words):
        return f"{argument.name} needs a value"
    for word in takewhile(lambda word: word != "--", words):
        bare = _strip(word.partition("=")[0])
        is_known = {bare, bare.removeprefix("no-"), bare.removeprefix("empty-")} & {*flags}
        if word.startswith("--") and not is_known and find_near(bare, flags):
            return describe_option(word, flags)
    return f"{argument.name} is missing"


def describe_option(option: str, flags: Collection[str]) -> str:
    """Name an unknown option, and the option of the command that is meant, if one is near."""
    name = option.partition("=")[0]
    bare = _strip(name)
    other = OPTIONS_OF_OTHERS.get(bare, "")
    near = [other] if other in flags else find_near(bare, flags)
    hint = f"; did you mean --{near[0]}?" if near else ""
    return f"there is no option {name}{hint}"


def describe_command(name: str, chain: str, names: Sequence[str]) -> str:
    """Name an unknown command, and the one that is meant, if one is near."""
    program = f"bertkit {chain}".strip()
    message = f"there is no command `{program} {name[:80]}`"
    if not chain and name in COMMANDS_OF_OTHERS:
        return f"{message}; {COMMANDS_OF_OTHERS[name]}"
    if near := find_near(name, names):
        return f"{message}; did you mean `{program} {near[0]}`?"
    return f"{message}; there are {', '.join(names)}" if len(names) <= MAX_LISTED else message


def _strip(option: str) -> str:
    return option.lstrip("-").replace("_", "-")
