"""What the tests of the loop share."""

import pytest
import torch

from bertkit.training.job import Machine
from bertkit.training.run import Run, RunRecord


@pytest.fixture
def machine():
    return Machine(torch.device("cpu"), "fp32", peak_operations=1e9)


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    run.write_record(
        RunRecord(settings={}, data_fingerprint="", model={}, num_steps=0, versions={})
    )
    return run
