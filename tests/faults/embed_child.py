"""What runs in a child process: `bertkit embed`, its rows made safe after every few texts."""

import os
import sys

from tests.faults.prepare_child import Errand, watch_storage

from bertkit.cli.main import main
from bertkit.inference import stream
from bertkit.recipes.embed import unfinished

WINDOW_TEXTS = 8


def carry_out(errand: Errand) -> None:
    """Run the command and end as it ends."""
    descriptor = os.open(errand.trace.with_suffix(".messages"), os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, sys.stdout.fileno())
    stream.WINDOW_TEXTS, unfinished.SAVE_SECONDS = WINDOW_TEXTS, 0.0
    watch_storage(errand)
    sys.exit(main(errand.words))
