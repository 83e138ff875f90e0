"""Every error that a user can cause, as one tree.

The command line prints such an error in one line and exits with `exit_code`; anything else that
is raised is a bug of ours and shows its traceback. Each class is also the built-in error that fits
it, so that code which knows nothing of bertkit can catch it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BertkitError(Exception):
    """Root of the tree: something that the caller can put right, and the message says how."""

    exit_code = 2


class SettingsError(BertkitError, ValueError):
    """A flag, a key of a TOML file or an argument has a value that can't be meant."""


class InputError(BertkitError, ValueError):
    """A text, a corpus or a vocabulary that was handed in can't be used."""


class MissingFileError(BertkitError, FileNotFoundError):
    """A file or folder that was named, or that belongs to a whole, isn't there."""


class DamagedFileError(BertkitError, ValueError):
    """A file isn't what was once written: cut short, altered, or not of its format."""


class CheckpointError(BertkitError, ValueError):
    """A model's config or tensors mean something that the model can't take."""


class UnsafeFileError(BertkitError, ValueError):
    """A foreign file asks for running code, for a way out of its folder, or for endless memory."""


class HubError(BertkitError, OSError):
    """The Hub can't be reached, refuses, or sent something else than it promised."""


class ResumeError(BertkitError, ValueError):
    """Unfinished work can't be taken up, because what it was begun with has changed."""


class StorageError(BertkitError, OSError):
    """Reading or writing a file failed: no space, no permission, or an I/O error."""


class NonFiniteError(BertkitError, ArithmeticError):
    """Training produced infinities or NaNs, too often to go on."""


class FailedRunsError(BertkitError, RuntimeError):
    """Some of several runs failed; the others are done, and each has its reason beside it."""


class StoppedError(BertkitError):
    """A signal ended the work; what was done is saved, and the message says how to go on."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: the same command may be run again


class MissingExtraError(BertkitError, ImportError):
    """An optional dependency isn't installed."""


@contextmanager
def storage_errors(path: Path, participle: str) -> Iterator[None]:
    """Turn what the system refuses into an error that names the path and the cause.

    Raises:
        MissingFileError: `participle` is "read" and there is no such file.
        StorageError: `path` can't be written, made, read … as `participle` says.
    """
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
