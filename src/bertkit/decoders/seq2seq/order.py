"""The order of pairs, in steps of about as many tokens: a pure function of the seed."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError

BATCH_ORDERING = 5  # purpose of the generator; part of its seed


class TokenBatchOrder:
    """The examples of each step, a pure function of (seed, step).

    Each epoch has every example once, in a new random order, with a new step wherever the next
    example would exceed the budget; a longer example is a step by itself. Batches are packed, so
    examples of any lengths can be combined. Only the number of steps of each epoch, and the order
    of one epoch, are kept in memory.

    Source: Vaswani et al. 2017, section 5.1 (batches of about as many tokens), without their groups
    of similar lengths, which only save padding.
    """

    def __init__(
        self, lengths: Sequence[int] | npt.NDArray[np.integer], tokens_per_batch: int, seed: int
    ) -> None:
        if not len(lengths):
            raise InputError("there are no examples to train on")
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.tokens_per_batch, self.seed = tokens_per_batch, seed
        self._first_steps = [0]
        self._plan = lru_cache(maxsize=1)(self._draw)

    def examples(self, step: int) -> npt.NDArray[np.int64]:
        """Return the indices of a step's examples, from 0; at least one."""
        epoch = self.epoch_of(step)
        return self._plan(epoch)[step - self.first_step(epoch)]

    def epoch_of(self, step: int) -> int:
        """Return the epoch, from 0, that a step belongs to."""
        while self._first_steps[-1] <= step:
            self._count_epoch()
        return int(np.searchsorted(self._first_steps, step, side="right")) - 1

    def first_step(self, epoch: int) -> int:
        """Return the first step of an epoch: the number of steps in all epochs before it."""
        while len(self._first_steps) <= epoch:
            self._count_epoch()
        return self._first_steps[epoch]

    def steps_per_epoch(self, epoch: int) -> int:
        """Return the number of steps in an epoch, which varies slightly between epochs."""
        return self.first_step(epoch + 1) - self.first_step(epoch)

    def _count_epoch(self) -> None:
        """Plan the next epoch, to count its steps."""
        epoch = len(self._first_steps) - 1
        self._first_steps.append(self._first_steps[-1] + len(self._plan(epoch)))

    def _draw(self, epoch: int) -> list[npt.NDArray[np.int64]]:
        """Return the examples of each step of an epoch."""
        generator = np.random.default_rng((self.seed, BATCH_ORDERING, epoch))
        permutation = generator.permutation(len(self.lengths))
        ends = np.cumsum(self.lengths[permutation])
        steps, start, spent = [], 0, 0
        while start < len(permutation):
            fitting = int(np.searchsorted(ends, spent + self.tokens_per_batch, side="right"))
            stop = max(start + 1, fitting)
            steps.append(permutation[start:stop])
            start, spent = stop, int(ends[stop - 1])
        return steps
