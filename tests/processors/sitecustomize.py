"""Run in each process of a test run, so that bertkit finds the processor that was asked for."""

import os
from pathlib import Path

from rounding import ROUNDING_ERROR, plant_bf16, plant_rounding_error

if path := os.environ.get("BERTKIT_TEST_PROCESSOR"):
    from bertkit.training import processor

    processor.CPU_INFO = Path(path)
    plant_bf16()
if share := os.environ.get(ROUNDING_ERROR):
    plant_rounding_error(float(share))
