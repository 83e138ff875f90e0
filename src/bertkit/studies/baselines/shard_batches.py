"""Batches of running text: those of a step, and the held-out ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from bertkit.base.errors import InputError
from bertkit.data.order import ExampleOrder, PlannedExample
from bertkit.data.shards import Shard, ShardSet
from bertkit.objectives.objective import Examples
from bertkit.recipes.pretrain.job import EVALUATION_SEED

NUM_EVALUATED = 16  # sequences that an evaluation scores at a time


class Planner(Protocol):
    """What plans the examples of shards and makes batches of them."""

    def plan(self, epoch: int, shard: int) -> Examples:
        """The examples of one shard for one epoch, a row each."""

    def batch(self, examples: Sequence[PlannedExample]) -> Any:
        """Lay examples end to end."""


@dataclass(frozen=True)
class ShardBatches:
    """The batches of a run.

    Args:
        shards: the text.
        build: shards of a split and seed → what makes their batches.
        seed: decides the order of examples.
    """

    shards: ShardSet
    build: Callable[[Sequence[Shard], int], Planner]
    seed: int

    def training(self, batch_size: int, accumulate: int) -> Callable[[int], list[Any]]:
        """Step → its micro-batches."""
        if not self.shards.train:
            raise InputError(f"{self.shards.folder} has no training text; prepare a larger corpus")
        planner = self.build(self.shards.train, self.seed)
        order = self._order(planner, self.shards.train, self.seed)

        def batches_at(step: int) -> list[Any]:
            examples = order.examples(step * batch_size, batch_size)
            size = -(-len(examples) // accumulate)
            starts = range(0, len(examples), size)
            return [planner.batch(examples[start : start + size]) for start in starts]

        return batches_at

    def held_out(self, num_sequences: int) -> list[Any]:
        """The same examples for every run."""
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
