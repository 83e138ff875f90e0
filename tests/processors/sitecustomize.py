"""Run in each process of a test run with `--processor`, so that bertkit finds that kind."""

import os
from pathlib import Path

from bertkit.training import processor

processor.CPU_INFO = Path(os.environ["BERTKIT_TEST_PROCESSOR"])
