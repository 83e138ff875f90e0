"""Run the command line as `python -m bertkit`."""

import sys

from bertkit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
