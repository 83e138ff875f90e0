"""Standard output in every state, and how the process ends in it."""

import errno
import io
import json
import os
import shlex
import subprocess
import sys

import pytest
import torch

from bertkit.base.errors import InputError, StorageError, is_out_of_memory
from bertkit.base.output import check_standard_output
from bertkit.cli.main import main
from bertkit.cli.next_step import describe_next
from bertkit.cli.streams import (
    ReaderGoneError,
    describe_shortage,
    hold_standard_output,
    settle_standard_error,
)

SHORTAGES = [
    MemoryError(),
    MemoryError("Unable to allocate 7.45 GiB for an array"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("Exception from src/inference/src/dev/plugin.cpp:54:\ncan't alloc\n"),
    RuntimeError("[CPU] Add node with name 'Add_75' can't alloc\n"),
    RuntimeError("Exception from plugin.cpp:54:\nstd::future_error: Broken promise\n"),
    OSError(12, "Cannot allocate memory"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
def test_a_shortage_is_known(error):
    assert is_out_of_memory(error)


def test_what_torch_itself_says():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 55)
    assert is_out_of_memory(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), KeyError("memory")], ids=repr)
def test_a_bug_is_none(error):
    assert not is_out_of_memory(error)


def test_it_names_the_flags_that_the_command_has():
    assert describe_shortage({"max-length", "batch-size", "output"}) == (
        "out of memory; lower --batch-size or --max-length, or use a smaller model or a machine"
        " with more memory"
    )
    assert describe_shortage({"output"}) == (
        "out of memory; use shorter texts, a smaller model or a machine with more memory"
    )


FULL = OSError(errno.ENOSPC, "No space left on device")
GONE = BrokenPipeError(errno.EPIPE, "Broken pipe")


class Refusing(io.TextIOWrapper):
    """A stream whose bytes nobody takes, as late as the system tells it: when it is flushed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(io.BytesIO(), "utf-8")
        self._error = error

    def flush(self) -> None:
        raise self._error

    def close(self) -> None:
        self.detach()


def show(text, error=None):
    """Write text as a command does, which then may fail."""
    with hold_standard_output():
        sys.stdout.write(text)
        if error is not None:
            raise error


@pytest.fixture
def stdout(monkeypatch):
    def put(stream):
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    return put


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (FULL, StorageError, "standard output can't be written: No space left on device"),
        (OSError(errno.EIO, "Input/output error"), StorageError, "Input/output error"),
        (GONE, ReaderGoneError, None),
    ],
)
def test_what_the_system_refuses_is_an_error_when_the_block_ends(stdout, error, kind, message):
    stream = stdout(Refusing(error))
    with pytest.raises(kind, match=message):
        show("a result\n")
    assert sys.stdout is stream


def test_an_error_of_the_block_goes_before_one_of_the_stream(stdout):
    stdout(Refusing(FULL))
    with pytest.raises(InputError, match="row 7"):
        show("a result\n", InputError("row 7"))


def test_results_before_an_error_are_shown(stdout):
    stream = stdout(io.TextIOWrapper(io.BytesIO(), "utf-8"))
    with pytest.raises(InputError):
        show("a result\n", InputError("row 7"))
    assert stream.buffer.getvalue() == b"a result\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16-le"])
@pytest.mark.parametrize("text", ["é ☃ 😀", "a \udc80 b", '"\\'])
def test_json_stays_json_in_every_encoding(stdout, encoding, text):
    stream = stdout(io.TextIOWrapper(io.BytesIO(), encoding))
    show(json.dumps(text, ensure_ascii=False))
    assert json.loads(stream.buffer.getvalue().decode(encoding)) == text


def test_what_an_encoding_has_is_written_as_it_is(stdout):
    stream = stdout(io.TextIOWrapper(io.BytesIO(), "latin-1"))
    show("é ☃\n")
    assert stream.buffer.getvalue() == b"\xe9 \\u2603\n"


def test_a_closed_standard_output_is_refused(stdout):
    stdout(None)
    with hold_standard_output():
        assert not sys.stdout.isatty()
        with pytest.raises(StorageError, match="it is closed"):
            sys.stdout.write("a result")
        with pytest.raises(StorageError, match="redirect it to a file"):
            check_standard_output()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["finetune", "--help"]])
@pytest.mark.parametrize(("stream", "code"), [(Refusing(FULL), 2), (None, 2), (Refusing(GONE), 0)])
def test_help_and_version_are_results_too(stdout, capsys, words, stream, code):
    stdout(stream)
    assert main(words) == code
    shown = capsys.readouterr().err
    assert shown.startswith("bertkit: standard output can't be written: ") if code else not shown


def test_standard_error_that_is_broken_is_let_go(monkeypatch):
    """Else Python would find it broken when the process ends, and make the exit code 120."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        stream.write("a line")
        settle_standard_error()
        stream.flush()


# The interpreter's own part: what is closed before it starts, and its flush at exit.
CASES = {
    "bertkit --version >/dev/full": (2, "can't be written: No space left on device"),
    "bertkit --help | true; exit ${PIPESTATUS[0]}": (0, ""),
    "bertkit nothing 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}": (2, ""),
    "bertkit --version >&- 2>&- <&-": (2, ""),
}


@pytest.mark.parametrize("line", CASES)
def test_how_the_process_ends(line):
    code, message = CASES[line]
    result = run_line(line.replace("bertkit", f"{sys.executable} -m bertkit"))
    assert (result.returncode, result.stdout) == (code, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == (1 if message else 0)


def run_line(line):
    """Run a line of the shell, with streams that are buffered as users have them."""
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)


OPENING = """
import os, sys, types
from bertkit.cli import app as module
from bertkit.cli.main import main

def open_files():
    numbers = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    os._exit(min(numbers) < 3)

sys.modules["opening"] = types.SimpleNamespace(open_files=open_files)
module.COMMANDS = {"open-files": "opening:open_files"}
main(["open-files"])
"""


def test_no_file_takes_the_place_of_a_closed_stream():
    assert run_line(f"{sys.executable} -c '{OPENING}' <&- >&- 2>&-").returncode == 0


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("run/step-1.npy", "run/step-1.npy"),
        ("She opened the [MASK].", '"She opened the [MASK]."'),
        ("my folder", '"my folder"'),
        ("$HOME", "'$HOME'"),
        ('say "yes"', "'say \"yes\"'"),
        ("", '""'),
    ],
)
def test_a_command_to_try_can_be_pasted_into_a_shell(word, shown):
    line = describe_next("embed", word)
    assert line == f"Try: bertkit embed {shown}"
    assert shlex.split(line)[2:] == ["embed", word]
