"""Training and held-out batches of running text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from bertkit.base.errors import InputError
from bertkit.data.order import ExampleOrder, PlannedExample
from bertkit.data.shards import Shard, ShardSet
from bertkit.recipes.pretrain.job import EVALUATION_SEED
from bertkit.tasks.objectives.objective import Examples

NUM_EVALUATED = 16  # sequences of an evaluation batch


class Planner(Protocol):
    """Plans the examples of shards and builds batches from them."""

    def plan(self, epoch: int, shard: int) -> Examples:
        """Return the examples of one shard for one epoch, one row each."""

    def batch(self, examples: Sequence[PlannedExample]) -> Any:
        """Pack examples into a batch."""


@dataclass(frozen=True)
class ShardBatches:
    """The batches of a run.

    Args:
        shards: the text.
        build: the shards of a split, seed → their planner.
        seed: the seed of the order of examples.
    """

    shards: ShardSet
    build: Callable[[Sequence[Shard], int], Planner]
    seed: int

    def training(self) -> Callable[[Sequence[int]], Any]:
        """Return a function from places in the order of examples to a micro-batch."""
        if not self.shards.train:
            raise InputError(f"{self.shards.folder} has no training text; prepare a larger corpus")
        planner = self.build(self.shards.train, self.seed)
        order = self._order(planner, self.shards.train, self.seed)
        return lambda places: planner.batch([order.example(place) for place in places])

    def held_out(self, num_sequences: int) -> list[Any]:
        """Return the evaluation batches, the same for every run."""
        if not self.shards.held_out:
            raise InputError(
                f"{self.shards.folder} has no held-out text; prepare again with a larger"
                " --held-out share"
            )
        planner = self.build(self.shards.held_out, EVALUATION_SEED)
        order = self._order(planner, self.shards.held_out, EVALUATION_SEED)
        examples = list(islice(order.first_epoch(), num_sequences))
        starts = range(0, len(examples), NUM_EVALUATED)
        return [planner.batch(examples[start : start + NUM_EVALUATED]) for start in starts]

    def _order(self, planner: Planner, parts: Sequence[Shard], seed: int) -> ExampleOrder:
        return ExampleOrder([shard.num_tokens for shard in parts], planner.plan, seed=seed)
