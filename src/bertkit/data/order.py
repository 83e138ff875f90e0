"""The order of examples: a pure function of the seed, in epochs (fine-tuning) or windows of shards.

The order for pre-training is endless. Each epoch permutes the shards and groups consecutive ones
into windows of bounded size. A window's examples are planned and shuffled together, so that memory
depends on the window and not on the corpus. Seeking to a late example replans the windows before
it, which is fast compared to training.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import InputError

WINDOW_TOKENS = 100_000_000
# Purpose of each generator, as in `tasks/objectives/`; part of its seed.
SHARD_ORDER, EXAMPLE_ORDER = 3, 4
LOOKED_BATCHES = 16  # among whose examples those of a step are looked for


class EpochOrder:
    """The examples of each step, a pure function of (seed, step).

    The last step of an epoch may have fewer.
    """

    def __init__(self, num_examples: int, batch_size: int, seed: int) -> None:
        self.num_examples, self.batch_size, self.seed = num_examples, batch_size, seed
        self.steps_per_epoch = -(-num_examples // batch_size)
        self._permutation = lru_cache(maxsize=1)(self._draw)

    def examples(self, step: int) -> NDArray[np.int64]:
        """Return the indices of a step's examples, from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        start = place * self.batch_size
        return self._permutation(epoch)[start : start + self.batch_size]

    def _draw(self, epoch: int) -> NDArray[np.int64]:
        generator = np.random.default_rng((self.seed, EXAMPLE_ORDER, epoch))
        return generator.permutation(self.num_examples)


class DistinctOrder(EpochOrder):
    """An order of queries with passages in which a step has no passage of another query as its own.

    No text stands twice in a step, and no passage that answers another query of the step in any
    row. Examples for which there is no such place fill the last steps that have room.

    Args:
        rows: the query and the passages of each example, the first of which answers the query.
    """

    def __init__(
        self, rows: Sequence[tuple[str, Sequence[str]]], batch_size: int, seed: int
    ) -> None:
        super().__init__(len(rows), batch_size, seed)
        self._rows = rows
        self._answers: defaultdict[str, set[str]] = defaultdict(set)  # the passages of a query
        self._queries: defaultdict[str, set[str]] = defaultdict(set)  # those a passage answers
        for query, (answer, *_) in rows:
            self._answers[query].add(answer)
            self._queries[answer].add(query)
        self.num_unplaced = 0  # in the epoch that was drawn last

    def _draw(self, epoch: int) -> NDArray[np.int64]:
        waiting = deque(super()._draw(epoch).tolist())
        order, self.num_unplaced = list[int](), 0
        while waiting:
            taken, passed = self._choose(waiting)
            missing = min(self.batch_size, len(taken) + len(passed) + len(waiting)) - len(taken)
            waiting.extendleft(reversed(passed))
            self.num_unplaced += missing
            order += [*taken, *(waiting.popleft() for _ in range(missing))]
        return np.array(order, dtype=np.int64)

    def _choose(self, waiting: deque[int]) -> tuple[list[int], list[int]]:
        """Take the first examples that can be in one step, and return those before them, too."""
        queries, passages = set[str](), set[str]()
        taken, passed = list[int](), list[int]()
        most = self.batch_size * LOOKED_BATCHES
        while waiting and len(taken) < self.batch_size and len(taken) + len(passed) < most:
            number = waiting.popleft()
            query, own = self._rows[number]
            fits = self._answers[query].isdisjoint(passages) and all(
                self._queries[one].isdisjoint(queries) for one in own if one in self._queries
            )
            if not fits:
                passed.append(number)
                continue
            taken.append(number)
            queries.add(query)
            passages.update(own)
        return taken, passed


@dataclass(frozen=True)
class ExampleKey:
    """The identity of an example: its index among those of a shard in an epoch."""

    epoch: int
    shard: int
    index: int


@dataclass(frozen=True)
class PlannedExample:
    """An example: its key, and its row in the shard's plan."""

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
        plan: (epoch, shard) → rows, one per example; a pure function.
        is_shuffled: False keeps shards and examples in their original order, for evaluation.
        window_tokens: maximum number of tokens of the shards that are shuffled together.
    """

    shard_sizes: Sequence[int]
    plan: Callable[[int, int], NDArray[np.int64]]
    seed: int
    is_shuffled: bool = True
    window_tokens: int = WINDOW_TOKENS
    _window: _Window | None = field(default=None, init=False, repr=False)
    _next_window: tuple[int, int] = field(default=(0, 0), init=False, repr=False)

    def example(self, place: int) -> PlannedExample:
        """Return the example at a place of the sequence, counted from 0."""
        return self._find_window(place).example(place)

    def examples(self, start: int, count: int) -> list[PlannedExample]:
        """Return examples `start` to `start + count`, across windows and epochs."""
        return [self.example(place) for place in range(start, start + count)]

    def first_epoch(self) -> Iterator[PlannedExample]:
        """Yield all examples of epoch 0; windows are planned one at a time."""
        place = 0
        while (window := self._find_window(place)).epoch == 0:
            yield from (window.example(number) for number in range(place, window.stop))
            place = window.stop

    def _find_window(self, place: int) -> _Window:
        """Return the window that contains an example; only the current window is cached."""
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
        """Plan and shuffle one window, and remember which one is next."""
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
        """Return the shards in the epoch's order, in groups of bounded size."""
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
