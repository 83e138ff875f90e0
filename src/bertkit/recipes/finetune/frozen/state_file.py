"""What a head reads of examples, computed once into a file and read through a memory map.

The file is a cache: it is recomputed whenever training begins or resumes, and removed afterward.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import StorageError, storage_errors
from bertkit.base.files import durable_file
from bertkit.base.progress import announce, show_progress
from bertkit.hardware.device import mixed_precision
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.batching import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import Encoded, TokenSequence, pack_sequences
from bertkit.training.job import Machine

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}
FLOAT_BYTES = 4


@dataclass(frozen=True)
class StateFile:
    """Hidden states of the sequences of some examples.

    Attributes:
        rows: states of all sequences, in the order they were computed; memory-mapped.
        sequences: the sequences of all examples, in order; only the tokens that the head reads.
        starts: the row at which each sequence begins.
        first_sequences: index of each example's first sequence, then the number of all sequences.
    """

    rows: npt.NDArray[np.float32]
    sequences: Sequence[TokenSequence]
    starts: npt.NDArray[np.int64]
    first_sequences: Sequence[int]

    def read(self, numbers: Sequence[int]) -> tuple[Float[Tensor, "tokens features"], PackedBatch]:
        """Return the states of some examples and the batch of their tokens."""
        sequences = [self.sequences[index] for index in self._find_sequences(numbers)]
        return torch.from_numpy(self.rows[self.find_rows(numbers)]), pack_sequences(sequences)

    def find_rows(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the indexes of the rows of some examples."""
        return np.concatenate(
            [
                np.arange(self.starts[index], self.starts[index] + len(self.sequences[index].ids))
                for index in self._find_sequences(numbers)
            ]
        )

    def _find_sequences(self, numbers: Sequence[int]) -> list[int]:
        return [
            index
            for number in numbers
            for index in range(self.first_sequences[number], self.first_sequences[number + 1])
        ]


def write_states(
    path: Path,
    model: FineTunedBert,
    encoded: Sequence[Encoded],
    machine: Machine,
    *,
    summarized: bool,
) -> StateFile:
    """Compute the hidden states of examples in batches of similar lengths.

    Args:
        path: the file to write.
        model: the model whose encoder computes the states, without dropout.
        encoded: the examples.
        machine: the device to compute on.
        summarized: keep what the head's last linear layer reads, instead of what the head reads.
    """
    whole = [sequence for one in encoded for sequence in one.sequences]
    is_short = summarized and model.summarizes_sequences
    kept = [TokenSequence(one.ids[:1], one.segments[:1]) for one in whole] if is_short else whole
    width = (
        model.last_linear.in_features
        if summarized
        else model.config.hidden_size * len(model.head_layers)
    )
    num_rows = sum(len(sequence.ids) for sequence in kept)
    _check_room(path, num_rows * width * FLOAT_BYTES)
    starts = np.zeros(len(whole), dtype=np.int64)
    device, place = machine.device, 0
    model.eval()
    with (
        durable_file(path) as stream,
        show_progress(f"hidden states into {path.name}", len(whole)) as bar,
        torch.inference_mode(),
        mixed_precision(device, machine.precision),
    ):
        for chosen in plan_batches([len(one.ids) for one in whole], TOKENS_PER_BATCH[device.type]):
            batch = pack_sequences([whole[index] for index in chosen]).to(device)
            states = model.states(batch)
            states = model.summarize(states, batch) if summarized else states
            states = states.float().cpu()
            stream.write(states.contiguous().numpy().data.cast("B"))
            for index in chosen:
                starts[index] = place
                place += len(kept[index].ids)
            bar.advance(len(chosen))
    rows = np.memmap(path, dtype=np.float32, mode="r", shape=(num_rows, width))
    first_sequences = [0, *accumulate(len(one.sequences) for one in encoded)]
    return StateFile(rows, kept, starts, first_sequences)


def _check_room(path: Path, num_bytes: int) -> None:
    """Announce the file's size; raise `StorageError` if the disk doesn't have that much space."""
    with storage_errors(path.parent, "read"):
        free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise StorageError(
            f"{path} would have {num_bytes / 1e6:,.1f} MB of hidden states, and the disk has"
            f" {free / 1e6:,.1f} MB left; make room, or choose another --output, fewer examples or"
            " --feature-layers last"
        )
    announce(f"computing hidden states once: {num_bytes / 1e6:,.1f} MB in {path}")
