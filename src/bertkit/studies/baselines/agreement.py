"""A made-up language in which a late word must agree with an early one.

    [CLS] filler … marker cue filler … filler [SEP]

Behind `distance` fillers a reader must say which cue stood behind the marker. Some fillers are cues
without a marker, which must not be believed. Nothing else tells the answer, so that accuracy over
distance says how far a net remembers. Each example is a pure function of (seed, split, number).

Source: the idea is that of Linzen et al. 2016, "Assessing the Ability of LSTMs to Learn
Syntax-Sensitive Dependencies", and of Hochreiter and Schmidhuber 1997, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from bertkit.base.wording import pluralize
from bertkit.nn.packing import PackedBatch

CLS_ID, SEP_ID, MARKER_ID, FIRST_CUE = 1, 2, 3, 4
NUM_CUES = 8
NUM_FILLERS = 32
FIRST_FILLER = FIRST_CUE + NUM_CUES
VOCAB_SIZE = FIRST_FILLER + NUM_FILLERS
MOST_BEFORE = 8  # fillers before the marker
LURE_SHARE = 0.05  # of the fillers that are cues without a marker
NUM_OTHERS = 4  # tokens that are no fillers: [CLS], marker, cue, [SEP]
TRAINING, MEASURING = 1, 2  # what a generator is for; part of its key


@dataclass(frozen=True)
class AgreementBatch:
    """Some examples.

    Attributes:
        packed: what is read.
        labels: which cue stood behind the marker, from 0.
        cue_places: where it stands in the packed batch.
    """

    packed: PackedBatch
    labels: Int[Tensor, " sequences"]
    cue_places: Int[Tensor, " sequences"]

    @property
    def num_tokens(self) -> int:
        """Tokens of all examples."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """How many answers are to be found."""
        return {"cue": len(self.labels)}

    def describe(self) -> str:
        """The examples, for messages."""
        return f"{pluralize(len(self.labels), 'example')}"

    def to(self, device: torch.device) -> "AgreementBatch":
        """The same batch on another device."""
        return AgreementBatch(
            self.packed.to(device), self.labels.to(device), self.cue_places.to(device)
        )


def list_distances(longest: int) -> list[int]:
    """The distances that are measured: 1, 2, 4, … up to the longest."""
    return [1 << power for power in range(longest.bit_length()) if 1 << power <= longest]


def longest_sequence(longest: int) -> int:
    """Tokens of the longest example whose cue is so far from its end."""
    return longest + MOST_BEFORE + NUM_OTHERS


def training_batch(seed: int, step: int, num_examples: int, longest: int) -> AgreementBatch:
    """Examples of one step, whose distances lie evenly on a scale of ratios.

    Args:
        seed: decides all of them.
        step: which.
        num_examples: how many.
        longest: the largest distance.
    """
    generator = np.random.default_rng((seed, TRAINING, step))
    powers = generator.uniform(0.0, np.log2(longest + 1), num_examples)
    return _make(generator, np.minimum(2.0**powers, longest).astype(np.int64))


def measuring_batch(distance: int, num_examples: int) -> AgreementBatch:
    """Examples of one distance, the same ones in every study."""
    generator = np.random.default_rng((0, MEASURING, distance))
    return _make(generator, np.full(num_examples, distance))


def _make(generator: np.random.Generator, distances: npt.NDArray[np.int64]) -> AgreementBatch:
    """An example of each distance."""
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
    """Words that tell nothing, lures among them."""
    fillers = generator.integers(FIRST_FILLER, VOCAB_SIZE, count)
    lures = generator.integers(FIRST_CUE, FIRST_FILLER, count)
    words: list[int] = np.where(generator.random(count) < LURE_SHARE, lures, fillers).tolist()
    return words
