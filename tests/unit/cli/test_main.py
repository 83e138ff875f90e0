"""The command line's frame: settings files, one-line errors, exit codes."""

import os
import signal
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import Field

from bertkit import __version__
from bertkit.base.errors import InputError, MissingExtraError, StoppedError
from bertkit.base.settings import Settings
from bertkit.cli import app as module
from bertkit.cli.main import fail, main, take_config_flag
from bertkit.cli.streams import describe_shortage

CAUSES = {
    "input": InputError("line 3 of a.txt\n  isn't text"),
    "stopped": StoppedError("stopped; go on with the same command"),
    "interrupt": KeyboardInterrupt(),
    "memory": MemoryError(),
    "pipe": BrokenPipeError(),
}


class BrewSettings(Settings):
    """Settings to test with."""

    degrees: int = Field(95, ge=0, le=100, description="Heat of the water.")
    strength: float = Field(1.0, gt=0, description="How strong.")
    with_milk: bool = Field(False, description="Milk.")
    sorts: tuple[str, ...] = Field(("arabica",), description="Beans.")


@pytest.fixture
def calls(monkeypatch):
    """The calls of a command named brew-coffee; there is one other, wash-up."""
    seen = []
    source = "tests_unit_cli_brew"
    monkeypatch.setitem(sys.modules, source, build_command_module(source, seen))
    monkeypatch.setattr(
        module, "COMMANDS", {"brew-coffee": f"{source}:brew_coffee", "wash-up": f"{source}:wash_up"}
    )
    return seen


def interrupt_an_import():
    """Press Ctrl-C where a library takes it for a fault of its own."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise MissingExtraError("torch isn't installed") from None


def build_command_module(name, seen):
    from types import ModuleType
    from typing import Annotated

    from cyclopts import Parameter

    def brew_coffee(
        *cups: str,
        output: str = "pot",
        cause: str | None = None,
        settings: Annotated[BrewSettings, Parameter(name="*")] = BrewSettings(),  # noqa: B008
    ) -> None:
        """Brew coffee."""
        if cause == "half imported":
            interrupt_an_import()
        if cause:
            raise CAUSES[cause]
        seen.append((cups, output, settings))

    def wash_up(*, hot: bool = False) -> None:
        """Wash up."""

    command_module = ModuleType(name)
    command_module.brew_coffee = brew_coffee
    command_module.wash_up = wash_up
    return command_module


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "settings.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def fails(capsys, words):
    """The one line that a wrong call prints."""
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("bertkit: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("spelling", ["with-milk", "with_milk"])
def test_a_file_gives_flags_and_the_command_line_wins(calls, config, spelling):
    path = config(
        f'[brew-coffee]\ndegrees = 70\nstrength = 2\n{spelling} = true\nsorts = ["a", "b"]\n'
        'output = "cup"\n'
    )
    assert main(["brew-coffee", "x", "--config", path, "--degrees", "60"]) == 0
    expected = BrewSettings(degrees=60, strength=2.0, with_milk=True, sorts=("a", "b"))
    assert calls == [(("x",), "cup", expected)]


def test_a_file_may_begin_with_a_byte_order_mark(calls, config):
    assert main(["brew-coffee", "--config", config("\ufeff[brew-coffee]\ndegrees = 70\n")]) == 0
    assert calls == [((), "pot", BrewSettings(degrees=70))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[brew-tea]\nx = 1", "settings.toml has unknown tables or keys: brew-tea"),
        ("degrees = 3", "settings.toml has unknown tables or keys: degrees"),
        ("[brew-coffee]\ndegree = 3", "aren't flags of `bertkit brew-coffee`: degree"),
        ("[wash-up]\nhot = true\nsoup = 1", "aren't flags of `bertkit wash-up`: soup"),
        ("[brew-coffee.settings]\ndegrees = 3", "settings"),
        ("[brew-coffee]\ndegrees = 300", "--degrees must be at most 100"),
        ("[brew-coffee]\ndegrees = 'hot'", "--degrees must be a whole number"),
        ("brew-coffee = 3", "brew-coffee must be a table, got 3"),
        ("[brew-coffee", "isn't TOML"),
    ],
)
def test_a_file_with_a_mistake_is_refused(calls, capsys, config, text, message):
    assert message in fails(capsys, ["brew-coffee", "--config", config(text)])
    assert calls == []


@pytest.fixture
def packages(calls, monkeypatch):
    """Lets installed packages have these commands, by their names."""

    def install(**values):
        found = [EntryPoint(name, value, module.ENTRY_POINTS) for name, value in values.items()]
        monkeypatch.setattr(module, "entry_points", lambda group: found)

    return install


def test_a_command_of_another_package_is_one_of_ours(packages, calls, config, capsys):
    packages(grind="tests_unit_cli_brew:brew_coffee")
    assert main(["grind", "--config", config("[grind]\ndegrees = 70\n"), "a"]) == 0
    assert calls == [(("a",), "pot", BrewSettings(degrees=70))]
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands of other packages")[2]
    assert "grind  Brew coffee." in listed


def test_a_broken_command_of_another_package_breaks_nothing_else(packages, config, capsys):
    packages(grind="no_such_module:grind")
    assert main(["wash-up"]) == 0
    message = "`bertkit grind` can't be imported from no_such_module:grind"
    assert message in fails(capsys, ["grind"])
    assert message in fails(capsys, ["wash-up", "--config", config("[grind]\na = 1\n")])
    assert main(["--help"]) == 0
    shown = capsys.readouterr()
    assert message in shown.err
    assert "grind" not in shown.out
    assert "did you mean `bertkit wash-up`?" in fails(capsys, ["wash-upp"])


def test_a_name_that_is_taken_is_refused(packages, capsys):
    packages(**{"wash-up": "a_mill:wash_up"})
    assert "two packages have a command `bertkit wash-up`" in fails(capsys, ["wash-up"])


@pytest.mark.parametrize(("name", "package"), module.PACKAGES.items())
def test_a_command_whose_package_is_not_installed_says_how(packages, config, capsys, name, package):
    packages()
    told = f"`bertkit {name}` is a package of its own; install it"
    for words in ([name, "--help"], ["wash-up", "--config", config(f"[{name}]\n")]):
        shown = fails(capsys, words)
        assert told in shown
        assert shown.endswith(f"pip install {package.folder}\n")
    assert (Path(__file__).parents[3] / package.folder / "pyproject.toml").is_file()


def test_a_settings_file_that_is_not_there(calls, capsys, tmp_path):
    path = str(tmp_path / "none.toml")
    assert f"{path} doesn't exist" in fails(capsys, ["brew-coffee", "--config", path])
    assert "--config needs" in fails(capsys, ["brew-coffee", "--config"])
    os.mkfifo(tmp_path / "pipe.toml")  # opening it would wait for whoever writes to it
    for path in (tmp_path, tmp_path / "pipe.toml"):
        assert "must be a file" in fails(capsys, ["brew-coffee", "--config", str(path)])


def test_after_two_dashes_nothing_is_our_flag():
    assert take_config_flag(["a", "--", "--config", "b"]) == (["a", "--", "--config", "b"], None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["brew-coffee", "--degrees", "101"], "--degrees must be at most 100"),
        (["brew-coffee", "--degrees", "hot"], "--degrees must be a whole number"),
        (["brew-coffee", "--degree", "9"], "did you mean --degrees?"),
        (["brew-cofee"], "did you mean `bertkit brew-coffee`?"),
        (["brew-coffee", "--output"], "--output needs a value"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(calls, capsys, words, message):
    assert message in fails(capsys, words)
    assert calls == []


@pytest.mark.parametrize(
    ("cause", "exit_code", "line"),
    [
        ("input", 2, "bertkit: line 3 of a.txt isn't text\n"),
        ("stopped", 75, "bertkit: stopped; go on with the same command\n"),
        ("interrupt", 130, "bertkit: interrupted\n"),
        ("memory", 1, f"bertkit: {describe_shortage(set())}\n"),
        ("half imported", 130, "bertkit: interrupted\n"),
    ],
)
def test_what_a_command_raises_becomes_a_line_and_an_exit_code(
    calls, capsys, cause, exit_code, line
):
    assert main(["brew-coffee", "--cause", cause]) == exit_code
    assert capsys.readouterr().err == line


def test_an_error_never_steers_the_terminal(capsys):
    assert fail("the file \x1b[2J\x07named\x9b\u202e so\nis refused", 2) == 2
    assert capsys.readouterr().err == "bertkit: the file [2Jnamed so is refused\n"


def test_a_bug_of_ours_keeps_its_traceback(calls):
    with pytest.raises(KeyError):
        main(["brew-coffee", "--cause", "no such cause"])


def test_a_pipe_of_another_kind_is_no_reader_that_went_away(calls):
    with pytest.raises(BrokenPipeError):
        main(["brew-coffee", "--cause", "pipe"])


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version(capsys, flag):
    assert main([flag]) == 0
    assert capsys.readouterr().out.strip() == f"bertkit {__version__}"


def test_help_of_a_command_is_asked_for_in_words_too(capsys):
    assert main(["help", "prepare"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: bertkit prepare" in shown
    assert main(["prepare", "--help"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["help"]) == 0
    assert "Pre-training" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_a_shell_completes_commands(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert main(["--install-completion", "--shell", "bash"]) == 0
    scripts = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("pretrain" in path.read_text("utf-8") for path in scripts)
