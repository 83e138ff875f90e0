"""The exception hierarchy of all errors that a user can cause.

The command line prints such an error in one line and exits with `exit_code`; any other exception is
a bug in bertkit and shows its traceback. Each class also derives from the matching built-in
exception, so that code that doesn't know bertkit can catch it.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # as of some network file systems
MAX_FRAMES = 8  # of a failure, in a log


class BertkitError(Exception):
    """Base class of all errors that the caller can fix; the message says how."""

    exit_code = 2
    flags: Sequence[Sequence[str]] = ()  # with their values; with each of them the command works
    has_finished_parts = False  # whether other files of many are finished, in the same folder


class SettingsError(BertkitError, ValueError):
    """A flag, a key of a TOML file or an argument has an invalid value."""


class InputError(BertkitError, ValueError):
    """A text, corpus, vocabulary or other input can't be used."""


class MissingFileError(BertkitError, FileNotFoundError):
    """A file or folder that was named, or that a model or data set needs, doesn't exist."""


class DamagedFileError(BertkitError, ValueError):
    """A file is truncated, altered, or not in the expected format."""


class CheckpointError(BertkitError, ValueError):
    """A checkpoint's config or tensors don't fit the model."""


class UnsafeFileError(BertkitError, ValueError):
    """A foreign file would run code, access files outside its folder, or take unbounded memory."""


class HubError(BertkitError, OSError):
    """The Hub can't be reached, refuses a request, or sent something other than it announced."""


class RemoteError(BertkitError, OSError):
    """A file system of fsspec can't be reached, or refuses a request."""


class ResumeError(BertkitError, ValueError):
    """Unfinished work can't be resumed because its inputs changed, or its output is locked."""


class StorageError(BertkitError, OSError):
    """Reading or writing a file failed: no space, no permission, or an I/O error."""


class BusyError(StorageError):
    """Another process is writing the same file, and went on for too long to wait."""


class NonFiniteError(BertkitError, ArithmeticError):
    """A computation produced infinities or NaNs and can't continue."""


class ForkError(BertkitError, RuntimeError):
    """A process was forked too late to compute: its parent had used a model before."""


class StoppedError(BertkitError):
    """A signal stopped the work; progress is saved, and the message says how to resume."""

    exit_code = 75  # EX_TEMPFAIL in sysexits.h: the same command can be run again


class MissingExtraError(BertkitError, ImportError):
    """An optional dependency isn't installed."""


@contextmanager
def storage_errors(path: object, participle: str) -> Iterator[None]:
    """Turn an `OSError` into a bertkit error that names the path and the cause.

    Raises:
        MissingFileError: `participle` is "read" and there is no such file.
        StorageError: `path` can't be written, made, read … as `participle` says.
    """
    if "\0" in str(path):  # Python raises a ValueError
        raise StorageError(f"{str(path)!r} can't be {participle}: no file's name has a NUL")
    try:
        yield
    except BertkitError:
        raise
    except FileNotFoundError as error:
        if participle == "read":
            raise MissingFileError(f"{path} doesn't exist") from None
        raise StorageError(f"{path} can't be {participle}: {error.strerror}") from error
    except OSError as error:
        raise StorageError(f"{path} can't be {participle}: {error.strerror or error}") from error


@contextmanager
def locking_errors(path: object) -> Iterator[None]:
    """The same where a file is locked, which not every file system can."""
    with storage_errors(path, "written"):
        try:
            yield
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            raise StorageError(
                f"{path} can't be locked, since its file system has no locks ({error.strerror});"
                " write to a local disk, and copy what was written"
            ) from None


def pluralize(number: float, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: "1 text", "2,000 texts", "0.5 epochs".

    Below 100 the count is shown with up to three significant digits.
    """
    shown = f"{number:,.3g}" if number < 100 else f"{number:,.0f}"
    return f"{shown} {noun if shown == '1' else plural or f'{noun}s'}"


def locate_failure(error: BaseException) -> str:
    """Return what failed and where, innermost first; its message may hold texts of a request."""
    frames = list(walk_tb(error.__traceback__))[-MAX_FRAMES:]
    places = [f"{Path(one.f_code.co_filename).name}:{line}" for one, line in reversed(frames)]
    return f"{type(error).__name__} at {' < '.join(places)}"


# Messages of torch, CUDA, C++, OpenVINO, the system and the loader of shared libraries; their
# exceptions have no common class.
SHORTAGES = (
    "can't alloc",  # "… memory" in torch, nothing more in OpenVINO
    "cannot allocate memory",
    "failed to allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "broken promise",  # of OpenVINO's threads that compile, if one couldn't start
    "failed to map segment",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the machine or its GPU is out of memory."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in message for phrase in SHORTAGES)
