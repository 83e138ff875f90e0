"""The table of commands, and the application of it, which imports each when it is needed."""

import sys
from collections.abc import Collection
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import CodeType
from typing import Any, NamedTuple

from cyclopts import App, Group

from bertkit._version import __version__
from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.progress import announce
from bertkit.base.wings import list_installed, load_object
from bertkit.tasks.table import TASKS

COMMANDS = {
    "train-tokenizer": "bertkit.cli.pretrain:train_tokenizer",
    "prepare": "bertkit.cli.pretrain:prepare",
    "pretrain": "bertkit.cli.pretrain:pretrain",
    "report": "bertkit.cli.pretrain:report",
    "fill-mask": "bertkit.cli.language:fill_mask",
    "generate": "bertkit.decoders.commands.generate:generate",
    "score": "bertkit.cli.language:score",
    "embed": "bertkit.cli.vectors:embed",
    "similarity": "bertkit.cli.search:similarity",
    "search": "bertkit.cli.search:search",
    "rerank": "bertkit.cli.search:rerank",
    "index add": "bertkit.cli.index:index_add",
    "index update": "bertkit.cli.index:index_update",
    "index delete": "bertkit.cli.index:index_delete",
    "index info": "bertkit.cli.index:index_info",
    "summarize": "bertkit.decoders.commands.summarize:summarize",
    "features": "bertkit.cli.vectors:features",
    "nearest": "bertkit.cli.search:nearest",
    "attention": "bertkit.interpret.commands:attention",
    "view": "bertkit.interpret.commands:view",
    "inspect": "bertkit.cli.model_files:inspect",
    "convert": "bertkit.cli.model_files:convert",
    "export": "bertkit.cli.model_files:export",
    "devices": "bertkit.cli.model_files:devices",
    "review": "bertkit.cli.review:review",
    "evaluate": "bertkit.cli.evaluate:evaluate",
    "translate": "bertkit.decoders.commands.translate:translate",
    "finetune translate": "bertkit.decoders.commands.finetune:finetune_translate",
    "finetune summarize": "bertkit.decoders.commands.finetune:finetune_summarize",
    "serve": "bertkit.serving.commands:serve",
}
FINETUNE_HELP = "Fine-tune a pre-trained model for a task: `bertkit finetune <task>`."
INDEX_HELP = "Keep an index of texts, one file, that stays current: `bertkit index <what>`."
# `finetune` has a command for each task, and each task has one of its own: those follow from TASKS.
# What a wing has is left out where the wing isn't installed.
START = Group("Start here", sort_key=0)
FINE_TUNING = Group("Fine-tuning and prediction", sort_key=1)
ENCODERS = Group("Using and inspecting models", sort_key=2)
PRETRAINING = Group("Pre-training", sort_key=3)
FILES = Group("Model files", sort_key=4)
STUDY_GROUP = Group("Studies", sort_key=5)
OTHERS = Group("Commands of other packages", sort_key=6)
OPTIONS = Group("Options", sort_key=7)
OF_INDEXES = Group("Commands", sort_key=0)
# Of `finetune`.
ONE_PASS = Group("Labels, numbers and spans of texts", sort_key=1)
SOURCES = Group("Model and data", sort_key=1)
PAIRS_OF_TEXTS: dict[str, Any] = {
    "group": Group("Texts from texts", sort_key=2),
    "group_parameters": SOURCES,
}
# Of a command; further panels stand below, where settings name them with `in_panel`.
ARGUMENTS = Group("Arguments", sort_key=0)
PARAMETERS = Group("Parameters", sort_key=1)
GROUPS = {
    **dict.fromkeys(("train-tokenizer", "prepare", "pretrain", "report"), PRETRAINING),
    **dict.fromkeys(("review", "evaluate", "translate"), FINE_TUNING),
    **dict.fromkeys(("inspect", "convert", "export", "devices"), FILES),
}

STARTING = ("classify", "search", "embed", "fill-mask", "finetune")  # what most people want

ENTRY_POINTS = "bertkit.commands"  # where a package names its commands


class Package(NamedTuple):
    """Where a command of a package of its own is listed, and the folder to install it from."""

    group: Group
    folder: str


PACKAGES = {
    "demo": Package(PRETRAINING, "./examples/demo"),
    "next-word": Package(STUDY_GROUP, "./studies"),
    "study": Package(STUDY_GROUP, "./studies"),
}

COMPLETION = "--install-completion"
HELP = (
    "Pre-train, fine-tune and use BERT: classification, tagging, question answering, embeddings,"
    " search."
)
CONFIG_HELP = (
    "`--config FILE.toml` reads flags from a file with one table per command;"
    " flags on the command line take precedence."
)


def build_app(*, is_list: bool = False) -> App:
    """The application; commands are imported when they are called or their help is shown.

    Args:
        is_list: for the list of all commands: each has only a sentence, and none is imported.
    """
    app = App(
        name="bertkit",
        help=HELP,
        help_epilogue=CONFIG_HELP,
        help_format="markdown",
        group_commands=OPTIONS,
        group_arguments=ARGUMENTS,
        group_parameters=PARAMETERS,
        version=f"bertkit {__version__}",
        version_flags=["--version", "-V"],
        suppress_keyboard_interrupt=False,
    )
    families = {"finetune": App(name="finetune", help=FINETUNE_HELP)}
    families["index"] = App(name="index", help=INDEX_HELP)
    add_tasks(families["finetune"])
    for order, (name, target) in enumerate(list_installed(COMMANDS).items()):
        first, _, word = name.partition(" ")
        if word:
            place = PAIRS_OF_TEXTS if first == "finetune" else {"group": OF_INDEXES}
            families[first].command(target, name=word, sort_key=order, **place)
        elif is_list:
            app.command(App(name=name, help=read_summary(target), **find_place(name, order)))
        else:
            app.command(target, name=name, **find_place(name, order))
    for name, family in families.items():
        order = [*(one.partition(" ")[0] for one in COMMANDS), name].index(name)
        place = find_place(name, order)
        family.group, family.sort_key = (place["group"],), place["sort_key"]
        app.command(family)
    app.register_install_completion_command(COMPLETION, group=OPTIONS)
    add_predictions(app, is_list=is_list)
    add_commands_of_packages(app, is_list=is_list)
    return app


def add_tasks(family: App) -> None:
    """Add `bertkit finetune <task>` for each task."""
    for order, name in enumerate(TASKS):
        target = f"bertkit.cli.predict:finetune_{name}"
        family.command(target, name=name, sort_key=order, group=ONE_PASS, group_parameters=SOURCES)


def add_predictions(app: App, *, is_list: bool) -> None:
    """Add `bertkit <task>` for each task that has it; `is_list` as in `build_app`."""
    for order, (name, entry) in enumerate(TASKS.items(), start=len(COMMANDS)):
        place = find_place(name, order, FINE_TUNING)
        if entry.has_command and is_list:
            app.command(App(name=name, help=entry.summary, **place))
        elif entry.has_command:
            app.command(f"bertkit.cli.predict:{name}", name=name, **place)


def read_summary(address: str) -> str | None:
    """Return a function's docstring from its module's compiled code, without running it.

    None if the address, `module:name`, isn't that of a function with a docstring.
    """
    home, _, name = address.partition(":")
    if home in sys.modules:
        found: str | None = getattr(sys.modules[home], name, None).__doc__
        return found
    read_code = getattr(getattr(find_spec(home), "loader", None), "get_code", lambda _: None)
    for constant in getattr(read_code(home), "co_consts", ()):
        if isinstance(constant, CodeType) and constant.co_name == name:
            first = constant.co_consts[0]  # the docstring, if there is one
            return first if isinstance(first, str) else None
    return None


def find_place(name: str, order: int, group: Group = ENCODERS) -> dict[str, Any]:
    """Return the panel of a command in the list of all, and its place in it."""
    if name in STARTING:
        return {"group": START, "sort_key": STARTING.index(name)}
    return {"group": GROUPS.get(name, group), "sort_key": order}


def add_commands_of_packages(app: App, *, is_list: bool) -> None:
    """Add the commands that installed packages name by entry points, which aren't imported yet.

    A list, as in `build_app`, leaves out those that can't be imported, with a warning.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in app:
            raise SettingsError(
                f"two packages have a command `bertkit {entry.name}`, one of them in {entry.value};"
                " uninstall one"
            )
        package = PACKAGES.get(entry.name)
        place: dict[str, Any] = {"sort_key": -1}
        place["group"] = OTHERS if package is None else package.group
        summary = summarize(entry) if is_list else None
        if summary is not None:
            app.command(App(name=entry.name, help=summary, **place))
        elif not is_list:
            app.command(entry.value, name=entry.name, **place)


def summarize(entry: EntryPoint) -> str | None:
    """Return what a package's command is for; None after a warning if it can't be imported."""
    with suppress(Exception):  # what is broken is named below
        if (summary := read_summary(entry.value)) is not None:
            return summary
    try:
        check_import(entry)
    except MissingExtraError as error:
        announce(f"WARNING: {error}")
        return None
    command = entry.load()
    return str(command.help if isinstance(command, App) else command.__doc__ or "")


def list_commands(app: App) -> dict[str, App]:
    """Commands by their words, such as `finetune classify`; this imports all of them."""
    names = {*app.help_flags, *app.version_flags, COMPLETION}
    found: dict[str, App] = {}
    for name in filter(lambda name: name not in names, app):
        command = app[name]
        if command.default_command is None:
            found |= {f"{name} {word}": one for word, one in list_commands(command).items()}
        else:
            found[name] = command
    return found


def check_import(entry: EntryPoint) -> None:
    """Raise MissingExtraError if a package's command can't be imported."""
    try:
        entry.load()
    except Exception as error:  # noqa: BLE001 - the package of somebody else may fail in any way
        raise MissingExtraError(
            f"`bertkit {entry.name}` can't be imported from {entry.value} ({error}); install its"
            " package anew, or uninstall it"
        ) from None


def check_installed(names: Collection[str], app: App) -> None:
    """Raise MissingExtraError for a command whose package or wing isn't installed, or is broken."""
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in names:
            check_import(entry)
    for name in names:
        if name in COMMANDS and name not in app:
            load_object(COMMANDS[name])
        if (package := PACKAGES.get(name)) is not None and name not in app:
            raise MissingExtraError(
                f"`bertkit {name}` is a package of its own; install it from bertkit's source"
                f" folder: pip install {package.folder}"
            )


def list_flags(command: App) -> set[str]:
    """The flags of a command, without dashes before them."""
    arguments = command.assemble_argument_collection()
    return {flag.lstrip("-") for argument in arguments if argument.parse for flag in argument.names}
