"""The `bertkit` command: finds the command, reads its TOML file, and reports errors."""

import os
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError
from cyclopts.config import Dict as ConfigDict

from bertkit.base.addresses import hide_secrets
from bertkit.base.errors import BertkitError, MissingExtraError, SettingsError, is_out_of_memory
from bertkit.base.extras import PACKAGES, describe_missing
from bertkit.base.progress import Launch, announce
from bertkit.base.signals import interruptible
from bertkit.cli.app import build_app, check_installed, list_commands, list_flags
from bertkit.cli.help import hide_rare, take_help_flag
from bertkit.cli.streams import (
    ReaderGoneError,
    announced_log,
    describe_shortage,
    fill_closed_descriptors,
    hold_standard_output,
    settle_standard_error,
)
from bertkit.reports.text import make_legible


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
        if error.flags and "--" not in words:
            from bertkit.cli.next_step import describe_next

            for flags in error.flags:
                announce(make_legible(describe_next(*words, *flags)))
        return error.exit_code
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        return fail(describe_missing(error.name), MissingExtraError.exit_code)
    except CycloptsError as error:
        return fail(describe_wrong_words(error, words), SettingsError.exit_code)
    except Exception as error:
        if not is_out_of_memory(error):
            if (wrong := describe_wrong_value(error)) is None:
                raise
            return fail(wrong, SettingsError.exit_code)
    else:
        return 0
    finally:
        settle_standard_error()
    # Only here, the exception no longer holds the memory of the command.
    exit_code = fail(describe_shortage(find_flags(words)), 1)
    settle_standard_error()
    return exit_code


def describe_wrong_words(error: CycloptsError, words: Sequence[str]) -> str:
    """Describe in one line what is wrong with the options of a command."""
    from bertkit.cli.usage import describe_usage

    return describe_usage(error, words, find_flags(words))


def describe_wrong_value(error: Exception) -> str | None:
    """Describe in one line which settings are wrong; None if the error is another one."""
    from pydantic import ValidationError

    from bertkit.base.settings import describe_validation

    return (
        describe_validation(error, are_flags=True) if isinstance(error, ValidationError) else None
    )


def run_command(words: Sequence[str]) -> None:
    """Run the command that the words name; errors as in `main`."""
    words, config_path = take_config_flag(words)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    words, shows_all = take_help_flag(words)
    is_list = not words or words[0] in ("--help", "-h")
    app = build_app(is_list=is_list)
    if not is_list:
        check_installed({words[0], " ".join(words[:2])}, app)
    if config_path is not None:
        tables = read_config(config_path, build_app() if is_list else app)
        app.config = [ConfigDict(tables, source=str(config_path))]
    has_help = not set(app.help_flags).isdisjoint(words)
    if words[:1] in (["finetune"], ["index"]) and set(app.help_flags).issuperset(words[1:]):
        list_commands(app[words[0]])  # so that its list shows what each is for
    elif has_help and not shows_all and not is_list:
        hide_rare(app, words)
    with interruptible():
        app(words, exit_on_error=False, print_error=False, result_action="return_none")


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
    from bertkit.base.files import read_text

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
