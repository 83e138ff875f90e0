"""The `bertkit` command: finds the command, reads its TOML file, and reports errors."""

import os
import sys
import tomllib
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

from cyclopts import App, CycloptsError, Group
from cyclopts.config import Dict as ConfigDict
from pydantic import ValidationError

from bertkit._version import __version__
from bertkit.base.addresses import hide_secrets
from bertkit.base.errors import BertkitError, MissingExtraError, SettingsError, is_out_of_memory
from bertkit.base.files import read_text
from bertkit.base.progress import Launch, announce
from bertkit.base.settings import describe_validation
from bertkit.base.signals import interruptible
from bertkit.base.wings import list_installed, load_object
from bertkit.cli.help import hide_rare, take_help_flag
from bertkit.cli.next_step import describe_next
from bertkit.cli.output import (
    ReaderGoneError,
    announced_log,
    describe_shortage,
    fill_closed_descriptors,
    hold_standard_output,
    settle_standard_error,
)
from bertkit.cli.predict import PAIRS_OF_TEXTS, build_finetune, build_predict
from bertkit.cli.usage import describe_usage
from bertkit.reports.text import make_legible
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


def build_app() -> App:
    """The application; commands are imported when they are called or their help is shown."""
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
    families = {"finetune": build_finetune(), "index": App(name="index", help=INDEX_HELP)}
    for order, (name, target) in enumerate(list_installed(COMMANDS).items()):
        first, _, word = name.partition(" ")
        if word:
            place = PAIRS_OF_TEXTS if first == "finetune" else {"group": OF_INDEXES}
            families[first].command(target, name=word, sort_key=order, **place)
        else:
            app.command(target, name=name, **find_place(name, order, ENCODERS))
    for name, family in families.items():
        order = [*(one.partition(" ")[0] for one in COMMANDS), name].index(name)
        place = find_place(name, order, ENCODERS)
        family.group, family.sort_key = (place["group"],), place["sort_key"]
        app.command(family)
    app.register_install_completion_command(COMPLETION, group=OPTIONS)
    for order, (name, entry) in enumerate(TASKS.items(), start=len(COMMANDS)):
        if entry.has_command:
            place = find_place(name, order, FINE_TUNING)
            app.command(build_predict(name, entry), name=name, **place)
    add_commands_of_packages(app)
    return app


def find_place(name: str, order: int, group: Group) -> dict[str, Any]:
    """Return the panel of a command in the list of all, and its place in it."""
    if name in STARTING:
        return {"group": START, "sort_key": STARTING.index(name)}
    return {"group": GROUPS.get(name, group), "sort_key": order}


def add_commands_of_packages(app: App) -> None:
    """Add the commands that installed packages name by entry points, which aren't imported yet."""
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in app:
            raise SettingsError(
                f"two packages have a command `bertkit {entry.name}`, one of them in {entry.value};"
                " uninstall one"
            )
        package = PACKAGES.get(entry.name)
        group = OTHERS if package is None else package.group
        app.command(entry.value, name=entry.name, sort_key=-1, group=group)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 for success, 1 if memory ran out, 2 for errors that the user can fix, 75 for work that a
        signal stopped and that can be resumed, 130 for Ctrl-C elsewhere.
    """
    # Threads that spin while they wait make training ten times slower beside any busy program.
    # OpenMP reads this when torch is loaded, which the command does later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if Launch.read().num_ranks > 1:  # torch warns of parameters that are used in every step
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    fill_closed_descriptors()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with hold_standard_output(), announced_log():
            run_command(words)
    except ReaderGoneError:
        return 0
    except BertkitError as error:
        fail(str(error), error.exit_code)
        for flags in error.flags if "--" not in words else ():
            announce(make_legible(describe_next(*words, *flags)))
        return error.exit_code
    except ValidationError as error:
        return fail(describe_validation(error, are_flags=True), SettingsError.exit_code)
    except CycloptsError as error:
        return fail(describe_usage(error, words, find_flags(words)), SettingsError.exit_code)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    else:
        return 0
    finally:
        settle_standard_error()
    # Only here, the exception no longer holds the memory of the command.
    exit_code = fail(describe_shortage(find_flags(words)), 1)
    settle_standard_error()
    return exit_code


def run_command(words: Sequence[str]) -> None:
    """Run the command that the words name; errors as in `main`."""
    words, config_path = take_config_flag(words)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    words, shows_all = take_help_flag(words)
    app = build_app()
    check_installed({*words[:1], " ".join(words[:2])}, app)
    if config_path is not None:
        app.config = [ConfigDict(read_config(config_path, app), source=str(config_path))]
    if not words or words[0] in app.help_flags:
        for entry in entry_points(group=ENTRY_POINTS):
            try:
                check_import(entry)
            except MissingExtraError as error:
                announce(f"WARNING: {error}")
                del app[entry.name]
        list_commands(app)  # so that the list shows what each is for
    elif words[0] in ("finetune", "index") and set(app.help_flags).issuperset(words[1:]):
        list_commands(app[words[0]])
    elif not shows_all and not set(app.help_flags).isdisjoint(words):
        hide_rare(app, words)
    with interruptible():
        app(words, exit_on_error=False, print_error=False, result_action="return_none")


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


def fail(message: str, exit_code: int) -> int:
    """Print one line to standard error, without control characters and secrets of URLs."""
    words = ("".join(filter(str.isprintable, word)) for word in hide_secrets(message).split())
    launch = Launch.read()
    program = "bertkit:" if launch.is_first else f"bertkit (rank {launch.rank}):"
    announce(" ".join((program, *words)), by_first_rank=False)
    return exit_code


def find_flags(words: Sequence[str]) -> set[str]:
    """The flags of the command that the words name, as in `list_flags`."""
    _, apps, _ = build_app().parse_commands(take_config_flag(words)[0])
    return list_flags(apps[-1]) if apps[-1].default_command is not None else set()


def take_config_flag(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """Separate `--config FILE` from the other words."""
    rest, path = [], None
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            rest += [word, *remaining]
        elif word == "--config" or word.startswith("--config="):
            value = word.partition("=")[2] or next(remaining, "")
            if not value:
                raise SettingsError("--config needs a TOML file")
            path = Path(value)
        else:
            rest.append(word)
    return rest, path


def read_config(path: Path, app: App) -> dict[str, Any]:
    """Read a TOML file of settings."""
    try:
        tables = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} isn't TOML: {error}") from None
    check_installed(tables, app)
    check_tables(path, app, (), tables)
    return tables


def check_tables(path: Path, app: App, words: tuple[str, ...], tables: dict[str, Any]) -> None:
    """Check that each table names a command, and each of its keys a flag."""
    commands = [name for name in app if not name.startswith("-")]
    unknown = sorted(tables.keys() - set(commands))
    if unknown:
        raise SettingsError(
            f"{path} has unknown tables or keys: {join_words(words, unknown)};"
            f" tables are {join_words(words, commands)}"
        )
    for name, table in tables.items():
        called = (*words, name)
        if not isinstance(table, dict):
            raise SettingsError(f"{path}: {'.'.join(called)} must be a table, got {table!r}")
        if app[name].default_command is None:
            check_tables(path, app[name], called, table)
            continue
        unread = sorted({key.replace("_", "-") for key in table} - list_flags(app[name]))
        if unread:
            raise SettingsError(
                f"{path}: the table {'.'.join(called)} has keys that aren't flags of `bertkit"
                f" {' '.join(called)}`: {', '.join(unread)}"
            )


def join_words(words: tuple[str, ...], names: Iterable[str]) -> str:
    """Names of tables inside the table of a command."""
    return ", ".join(".".join((*words, name)) for name in names)


def list_flags(command: App) -> set[str]:
    """The flags of a command, without dashes before them."""
    arguments = command.assemble_argument_collection()
    return {flag.lstrip("-") for argument in arguments for flag in argument.names}
