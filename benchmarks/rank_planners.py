"""Shards, real or synthetic, and the orders of their examples, as a training process has them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.order import ExampleOrder
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.objective import Objective
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import divide_step

SEED = 0
SHARD_TOKENS = 4_000_000  # of 16 MiB of text, which `prepare` makes a shard of
NUM_DISTINCT = 4  # synthetic shards; a corpus repeats them
SENTENCE_MEDIAN, SENTENCE_SIGMA = 22.0, 0.7  # tokens
DOCUMENT_MEDIAN, DOCUMENT_SIGMA = 16.0, 1.2  # sentences

Cut = Callable[[Sequence[Any], int], list[list[Any]]]


def cut_step(examples: Sequence[Any], num_ranks: int) -> list[list[Any]]:
    """Return the examples of each rank, as training divides those of a step."""
    return [[examples[number] for number in rank] for rank in divide(len(examples), num_ranks)]


@cache
def divide(num_examples: int, num_ranks: int) -> list[list[int]]:
    """Return the numbers of the examples that each rank takes of so many."""
    borders = divide_step(num_examples, 1, num_ranks)
    return [list(range(start, end)) for start, end in pairwise(borders)]


@dataclass(frozen=True, eq=False)
class SyntheticShard:
    """The offsets of a shard, without its tokens."""

    sentence_offsets: NDArray[np.int64]
    document_offsets: NDArray[np.int64]

    @property
    def num_tokens(self) -> int:
        return int(self.sentence_offsets[-1])

    @classmethod
    def draw(cls, number: int, num_tokens: int) -> "SyntheticShard":
        """Draw sentences until they have so many tokens, and documents of them."""
        generator = np.random.default_rng((SEED, number))
        count = max(4, int(1.5 * num_tokens / SENTENCE_MEDIAN))
        tokens = draw_sizes(generator, SENTENCE_MEDIAN, SENTENCE_SIGMA, count)
        ends = np.cumsum(tokens)
        ends = ends[: max(4, int(np.searchsorted(ends, num_tokens)))]
        sentences = draw_sizes(generator, DOCUMENT_MEDIAN, DOCUMENT_SIGMA, len(ends))
        stops = np.cumsum(sentences)
        stops = np.append(stops[stops < len(ends)], len(ends))
        return cls(np.append(0, ends), np.append(0, stops))


def draw_sizes(
    generator: np.random.Generator, median: float, sigma: float, count: int
) -> NDArray[np.int64]:
    sizes = generator.lognormal(np.log(median), sigma, count)
    return np.maximum(1, np.rint(sizes)).astype(np.int64)


@cache
def draw_shards(shard_tokens: int) -> list[SyntheticShard]:
    return [SyntheticShard.draw(number, shard_tokens) for number in range(NUM_DISTINCT)]


def draw_corpus(num_tokens: int, shard_tokens: int = SHARD_TOKENS) -> list[SyntheticShard]:
    """Return a synthetic corpus of at least so many tokens; its shards repeat a few."""
    distinct = draw_shards(min(shard_tokens, max(1, num_tokens // NUM_DISTINCT)))
    mean = sum(shard.num_tokens for shard in distinct) / len(distinct)
    return [distinct[number % NUM_DISTINCT] for number in range(max(1, round(num_tokens / mean)))]


@dataclass(frozen=True)
class Planner:
    """An objective over shards, and the orders of their examples.

    Attributes:
        window_tokens: None for the window that training has.
    """

    objective: Objective[Any]
    window_tokens: int | None = None
    is_shuffled: bool = True
    _plans: dict[tuple[int, int], NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @classmethod
    def over(
        cls,
        shards: Sequence[Any],
        tokenizer: Tokenizer,
        *,
        objective: str = "mlm",
        max_length: int = 128,
        window_tokens: int | None = None,
    ) -> "Planner":
        values: dict[str, Any] = {"objective": objective, "max_length": max_length}
        settings = PretrainSettings(recipe="paper", **values)
        kind = OBJECTIVES[settings.objective]
        built = kind.build(shards, tokenizer, settings, SEED)
        return cls(built, window_tokens)

    def start_order(self, *, is_planned: bool = True) -> ExampleOrder:
        """Return an order that has no window yet; it plans again what was planned if asked to."""
        sizes = [shard.num_tokens for shard in self.objective.shards]
        window = {} if self.window_tokens is None else {"window_tokens": self.window_tokens}
        plan = self.plan if is_planned else self.objective.plan
        return ExampleOrder(sizes, plan, seed=SEED, is_shuffled=self.is_shuffled, **window)

    def plan(self, epoch: int, shard: int) -> NDArray[np.int64]:
        if (epoch, shard) not in self._plans:
            self._plans[epoch, shard] = self.objective.plan(epoch, shard)
        return self._plans[epoch, shard]

    def count_examples(self) -> list[int]:
        return [len(self.plan(0, shard)) for shard in range(len(self.objective.shards))]

    def with_window(self, window_tokens: int) -> "Planner":
        return replace(self, window_tokens=window_tokens)
