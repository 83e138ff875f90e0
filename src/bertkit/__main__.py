"""The process of the command line: `bertkit`, or `python -m bertkit`."""

import signal
import sys
from typing import NoReturn

from bertkit.base.standard_error import StandardError
from bertkit.training.signals import STOP_SIGNALS


def run() -> NoReturn:
    """Run the command and end with its exit code.

    Once the command is done, a stop signal changes nothing: while Python shuts down, it would end
    the process without a word, and finished work would look interrupted.
    """
    try:
        from bertkit.cli.main import main

        exit_code = main()
    except KeyboardInterrupt:  # while the command line was loading
        StandardError(sys.stderr).write("bertkit: interrupted\n")
        exit_code = 130
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(exit_code)


if __name__ == "__main__":
    run()
