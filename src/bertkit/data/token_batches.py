"""The order in which examples are learned from, where a step has as many as fit a token budget."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError

ORDERING = 5  # what the generator is for; part of its key


class TokenBatchOrder:
    """Which examples a step has: a pure function of (seed, step).

    Each epoch has every example once, in a new random order, cut wherever the next example would
    go over the budget. Batches are packed, so examples of any lengths may stand beside each other.
    Only how many steps each epoch has is kept; the order of one epoch is held at a time.

    Args:
        lengths: tokens of each example, of source and target together.
        tokens_per_batch: the budget of a step, at least 1; an example that is longer is a step by
            itself.
        seed: decides the order.

    Raises:
        InputError: there is no example.

    Source: Vaswani et al. 2017, section 5.1 (batches of about as many tokens), without their groups
    of similar lengths, which only spare padding.
    """

    def __init__(
        self, lengths: Sequence[int] | npt.NDArray[np.integer], tokens_per_batch: int, seed: int
    ) -> None:
        if not len(lengths):
            raise InputError("there are no examples to learn from")
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.tokens_per_batch, self.seed = tokens_per_batch, seed
        self._first_steps = [0]
        self._plan = lru_cache(maxsize=1)(self._draw)

    def examples(self, step: int) -> npt.NDArray[np.int64]:
        """Numbers of a step's examples, from 0; at least one."""
        epoch = self.epoch_of(step)
        return self._plan(epoch)[step - self.first_step(epoch)]

    def epoch_of(self, step: int) -> int:
        """The epoch, from 0, to which a step belongs."""
        while self._first_steps[-1] <= step:
            self._count_epoch()
        return int(np.searchsorted(self._first_steps, step, side="right")) - 1

    def first_step(self, epoch: int) -> int:
        """The step with which an epoch begins: how many steps all epochs before it have."""
        while len(self._first_steps) <= epoch:
            self._count_epoch()
        return self._first_steps[epoch]

    def steps_per_epoch(self, epoch: int) -> int:
        """How many steps an epoch has; it differs a little from one to the next."""
        return self.first_step(epoch + 1) - self.first_step(epoch)

    def _count_epoch(self) -> None:
        """Plan the first epoch whose steps aren't counted yet, to count them."""
        epoch = len(self._first_steps) - 1
        self._first_steps.append(self._first_steps[-1] + len(self._plan(epoch)))

    def _draw(self, epoch: int) -> list[npt.NDArray[np.int64]]:
        """The examples of each step of an epoch."""
        generator = np.random.default_rng((self.seed, ORDERING, epoch))
        permutation = generator.permutation(len(self.lengths))
        ends = np.cumsum(self.lengths[permutation])
        steps, start, spent = [], 0, 0
        while start < len(permutation):
            fitting = int(np.searchsorted(ends, spent + self.tokens_per_batch, side="right"))
            stop = max(start + 1, fitting)
            steps.append(permutation[start:stop])
            start, spent = stop, int(ends[stop - 1])
        return steps
