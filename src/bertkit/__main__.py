"""The process of the command line: `bertkit`, or `python -m bertkit`."""

import signal
import sys
from typing import NoReturn

from bertkit.base.standard_error import StandardError


def run() -> NoReturn:
    """Run the command and end with its exit code.

    Loading takes a moment before a command can handle Ctrl-C, and so does the end of a process
    whose work is done; a signal that comes that late changes nothing.
    """
    try:
        from bertkit.cli.main import main
        from bertkit.training.signals import STOP_SIGNALS

        exit_code = main()
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
    except KeyboardInterrupt:
        StandardError(sys.stderr).write("bertkit: interrupted\n")
        exit_code = 130
    sys.exit(exit_code)


if __name__ == "__main__":
    run()
