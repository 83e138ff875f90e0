"""Example order for a table: a new permutation of all examples in each epoch."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

ORDERING = 4  # purpose of the generator; part of its seed


class EpochOrder:
    """The examples of each step, a pure function of (seed, step).

    Args:
        num_examples: of the table, at least 1.
        batch_size: examples per step; the last step of an epoch may have fewer.
        seed: determines the order.
    """

    def __init__(self, num_examples: int, batch_size: int, seed: int) -> None:
        self.num_examples, self.batch_size, self.seed = num_examples, batch_size, seed
        self.steps_per_epoch = -(-num_examples // batch_size)
        self._permutation = lru_cache(maxsize=1)(self._draw)

    def examples(self, step: int) -> npt.NDArray[np.int64]:
        """Return the indices of a step's examples, from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        start = place * self.batch_size
        return self._permutation(epoch)[start : start + self.batch_size]

    def _draw(self, epoch: int) -> npt.NDArray[np.int64]:
        generator = np.random.default_rng((self.seed, ORDERING, epoch))
        return generator.permutation(self.num_examples)
