"""A synthetic task of long-distance recall: a late token depends on an early one.

    [CLS] filler … marker cue filler … filler [SEP]

After `distance` fillers the model must predict which cue followed the marker. Some fillers are
distractors: cues without a marker. Nothing else predicts the answer, so accuracy as a function of
distance shows how far back a net remembers. Batches are a pure function of their arguments.

Source: after Linzen et al. 2016, "Assessing the Ability of LSTMs to Learn
Syntax-Sensitive Dependencies", and of Hochreiter and Schmidhuber 1997, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from bertkit.base.errors import pluralize
from bertkit.nn.packing import PackedBatch

CLS_ID, SEP_ID, MARKER_ID, FIRST_CUE = 1, 2, 3, 4
NUM_CUES = 8
NUM_FILLERS = 32
FIRST_FILLER = FIRST_CUE + NUM_CUES
VOCAB_SIZE = FIRST_FILLER + NUM_FILLERS
MOST_BEFORE = 8  # maximum number of fillers before the marker
LURE_SHARE = 0.05  # share of fillers that are distractors (cues without a marker)
NUM_OTHERS = 4  # tokens other than fillers: [CLS], marker, cue, [SEP]
TRAINING, MEASURING = 1, 2  # the split; part of the generator's seed


@dataclass(frozen=True)
class AgreementBatch:
    """A batch of examples.

    Attributes:
        packed: the input sequences.
        labels: the index of the cue that follows the marker, from 0.
        cue_places: the cue's position in the packed batch.
    """

    packed: PackedBatch
    labels: Int[Tensor, " sequences"]
    cue_places: Int[Tensor, " sequences"]

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the batch."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of labels of each loss."""
        return {"cue": len(self.labels)}

    def describe(self) -> str:
        """Describe the batch for messages."""
        return f"{pluralize(len(self.labels), 'example')}"

    def to(self, device: torch.device) -> "AgreementBatch":
        """Return the batch on another device."""
        return AgreementBatch(
            self.packed.to(device), self.labels.to(device), self.cue_places.to(device)
        )


def list_distances(longest: int) -> list[int]:
    """Return the distances to measure: 1, 2, 4, … up to the longest."""
    return [1 << power for power in range(longest.bit_length()) if 1 << power <= longest]


def longest_sequence(longest: int) -> int:
    """Return the maximum number of tokens of an example at this distance."""
    return longest + MOST_BEFORE + NUM_OTHERS


def training_batch(seed: int, step: int, num_examples: int, longest: int) -> AgreementBatch:
    """Return the examples of a training step; distances are distributed log-uniformly.

    Args:
        seed: the seed of the run.
        step: the number of the step.
        num_examples: the number of examples.
        longest: the largest distance.
    """
    generator = np.random.default_rng((seed, TRAINING, step))
    powers = generator.uniform(0.0, np.log2(longest + 1), num_examples)
    return _make(generator, np.minimum(2.0**powers, longest).astype(np.int64))


def measuring_batch(distance: int, num_examples: int) -> AgreementBatch:
    """Return evaluation examples of one distance, the same in every study."""
    generator = np.random.default_rng((0, MEASURING, distance))
    return _make(generator, np.full(num_examples, distance))


def _make(generator: np.random.Generator, distances: npt.NDArray[np.int64]) -> AgreementBatch:
    """Build one example for each distance."""
    sequences, labels, places = [], [], []
    start = 0
    for distance in distances.tolist():
        num_before = int(generator.integers(MOST_BEFORE + 1))
        cue = int(generator.integers(NUM_CUES))
        before, behind = (_draw_fillers(generator, count) for count in (num_before, distance))
        sequences.append([CLS_ID, *before, MARKER_ID, FIRST_CUE + cue, *behind, SEP_ID])
        labels.append(cue)
        places.append(start + num_before + 2)
        start += len(sequences[-1])
    return AgreementBatch(
        PackedBatch.from_single(sequences), torch.tensor(labels), torch.tensor(places)
    )


def _draw_fillers(generator: np.random.Generator, count: int) -> Sequence[int]:
    """Draw fillers, some of which are distractors."""
    fillers = generator.integers(FIRST_FILLER, VOCAB_SIZE, count)
    lures = generator.integers(FIRST_CUE, FIRST_FILLER, count)
    words: list[int] = np.where(generator.random(count) < LURE_SHARE, lures, fillers).tolist()
    return words
