"""The order in which examples are seen: a pure function of the seed, without end.

Each epoch takes the shards in a new order and groups neighbors into windows of bounded size. A
window's examples are planned and shuffled together, so that memory depends on the window and not
on the corpus. Finding the place of a late example replans the windows before it, which is quick
beside training on them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import InputError

WINDOW_TOKENS = 100_000_000
# Which draws a generator is for, as in `objectives/`; part of its key.
SHARD_ORDER, EXAMPLE_ORDER = 3, 4


@dataclass(frozen=True)
class ExampleKey:
    """The name of one example: which one of which shard's plan in which epoch."""

    epoch: int
    shard: int
    index: int


@dataclass(frozen=True)
class PlannedExample:
    """One example: its name, and its row in the plan of its shard."""

    key: ExampleKey
    row: NDArray[np.int64]


@dataclass(frozen=True)
class _Window:
    first: int
    plans: dict[int, NDArray[np.int64]]
    shards: NDArray[np.int64]
    indices: NDArray[np.int64]
    epoch: int

    @property
    def stop(self) -> int:
        return self.first + len(self.shards)

    def example(self, place: int) -> PlannedExample:
        shard = int(self.shards[place - self.first])
        index = int(self.indices[place - self.first])
        return PlannedExample(ExampleKey(self.epoch, shard, index), self.plans[shard][index])


@dataclass
class ExampleOrder:
    """The endless sequence of examples.

    Args:
        shard_sizes: tokens of each shard.
        plan: (epoch, shard) → rows, one an example; a pure function.
        seed: decides the order.
        is_shuffled: False keeps shards and examples in their own order, for evaluation.
        window_tokens: tokens of the shards that are shuffled together.
    """

    shard_sizes: Sequence[int]
    plan: Callable[[int, int], NDArray[np.int64]]
    seed: int
    is_shuffled: bool = True
    window_tokens: int = WINDOW_TOKENS
    _window: _Window | None = field(default=None, init=False, repr=False)
    _next_window: tuple[int, int] = field(default=(0, 0), init=False, repr=False)

    def examples(self, start: int, count: int) -> list[PlannedExample]:
        """Examples number `start` to `start + count`, across the borders of windows and epochs."""
        return [self._find_window(place).example(place) for place in range(start, start + count)]

    def first_epoch(self) -> Iterator[PlannedExample]:
        """All examples of epoch 0; a window is planned when it is reached."""
        place = 0
        while (window := self._find_window(place)).epoch == 0:
            yield from (window.example(number) for number in range(place, window.stop))
            place = window.stop

    def _find_window(self, place: int) -> _Window:
        """The window that holds an example, planned anew unless it is the last one used."""
        if self._window is not None and place < self._window.first:
            self._window, self._next_window = None, (0, 0)
        num_empty = 0
        while self._window is None or place >= self._window.stop:
            first = self._window.stop if self._window else 0
            self._window = self._plan_window(*self._next_window, first)
            num_empty = num_empty + 1 if self._window.stop == first else 0
            if num_empty > len(self.shard_sizes):
                raise InputError("the shards have no example: the text is too short to pair")
        return self._window

    def _plan_window(self, epoch: int, number: int, first: int) -> _Window:
        """Plan and shuffle one window, and note which one comes after it."""
        windows = self._group_shards(epoch)
        is_last = number + 1 == len(windows)
        self._next_window = (epoch + 1, 0) if is_last else (epoch, number + 1)
        plans = {shard: self.plan(epoch, shard) for shard in windows[number]}
        shards = np.repeat(list(plans), [len(rows) for rows in plans.values()])
        indices = np.concatenate([np.arange(len(rows)) for rows in plans.values()])
        if self.is_shuffled:
            generator = np.random.default_rng((self.seed, EXAMPLE_ORDER, epoch, number))
            order = generator.permutation(len(shards))
            shards, indices = shards[order], indices[order]
        return _Window(first, plans, shards, indices, epoch)

    def _group_shards(self, epoch: int) -> list[list[int]]:
        """The shards in this epoch's order, in groups of bounded size."""
        order = np.arange(len(self.shard_sizes))
        if self.is_shuffled:
            order = np.random.default_rng((self.seed, SHARD_ORDER, epoch)).permutation(order)
        groups: list[list[int]] = []
        size = 0
        for shard in order.tolist():
            if not groups or size + self.shard_sizes[shard] > self.window_tokens:
                groups.append([])
                size = 0
            groups[-1].append(shard)
            size += self.shard_sizes[shard]
        return groups
