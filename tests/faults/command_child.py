"""What runs in a child process: a command, so small that it ends in a second.

Rows of vectors are made safe after every few texts, and studies train for a moment.
"""

import os
import sys

import torch
from tests.faults.prepare_child import Errand, watch_storage

from bertkit.cli.main import main
from bertkit.inference import stream
from bertkit.recipes.finetune import comparison as search_cells
from bertkit.retrieval import vector_file
from bertkit.training import job
from bertkit_studies.experiments.steps import Steps
from bertkit_studies.probes import pretrained_arms
from bertkit_studies.probes.downstream import FineTuning
from bertkit_studies.probes.pretrained_arms import PretrainingScale

WINDOW_TEXTS = 8
SMALLEST = PretrainingScale(
    {"model": "tiny", "max_length": 32, "batch_size": 4, "eval_sequences": 8},
    tokens=1_000,
    fine_tuning=FineTuning(num_train=24, num_dev=24, learning_rate=1e-3, epochs=1.0, batch_size=8),
)


def carry_out(errand: Errand) -> None:
    """Run the command and end as it ends."""
    torch.set_num_threads(1)
    descriptor = os.open(errand.trace.with_suffix(".messages"), os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, sys.stdout.fileno())
    stream.WINDOW_TEXTS, vector_file.SAVE_SECONDS = WINDOW_TEXTS, 0.0
    job.measure_peak = lambda *_: 1e11
    search_cells.LEARNING_RATES, search_cells.BATCH_SIZES = (1e-9, 1e-2), (8,)
    search_cells.EPOCHS = (2.0,)
    pretrained_arms.SCALES["small"] = SMALLEST
    Steps.scales = pretrained_arms.SCALES
    watch_storage(errand)
    sys.exit(main(errand.words))
