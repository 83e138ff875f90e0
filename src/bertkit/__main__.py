"""The process of the command line: `bertkit`, or `python -m bertkit`."""

import gc
import signal
import sys
from typing import NoReturn

from bertkit.base.progress import StandardError
from bertkit.base.signals import STOP_SIGNALS
from bertkit.cli.streams import settle_standard_error


def run() -> NoReturn:
    """Run the command and end with its exit code.

    Once the command is done, a stop signal changes nothing: while Python shuts down, it would end
    the process without a word, and finished work would look interrupted.
    """
    exit_code: int | None = None
    leave_out_converter()
    try:
        from bertkit.cli.main import main

        exit_code = main()
        ignore_stop_signals()
    except KeyboardInterrupt:
        ignore_stop_signals()
        if exit_code is None:  # the command line was loading
            StandardError(sys.stderr).write("bertkit: interrupted\n")
            settle_standard_error()
            exit_code = 130
    gc.freeze()  # or Python looks for garbage in all that was loaded, which takes 0.1 s
    sys.exit(exit_code)


def leave_out_converter() -> None:
    """Have this process import OpenVINO without its converter of models, which nothing here needs.

    It takes as long to import as all the rest, and counts its imports for OpenVINO's makers where
    a user has agreed to that.
    """
    sys.modules["openvino.tools.ovc"] = None  # type: ignore[assignment]  # importing it fails


def ignore_stop_signals() -> None:
    """Let stop signals change nothing from here on."""
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)


if __name__ == "__main__":
    run()
