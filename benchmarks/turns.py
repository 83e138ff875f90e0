"""Measuring several sides in one process, in turns, and what is told of it."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def take_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, *, num_uncounted: int = 1
) -> dict[str, list[float]]:
    """The seconds of each side in each round; a round begins with another side each time.

    What machine and neighbors do to a round they do to all sides, so ratios are taken round by
    round. The first `num_uncounted` rounds are left out.
    """
    names = list(sides)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + num_uncounted):
        for name in order_turn(names, number):
            seconds[name].append(measure(sides[name]))
    return {name: values[num_uncounted:] for name, values in seconds.items()}


def order_turn(names: Sequence[str], number: int) -> list[str]:
    """The sides in the order of a round: each begins in turn."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def measure(run: Callable[[], object]) -> float:
    """Seconds of a run, with what it left a GPU to do."""
    wait_for_gpu()
    started = time.perf_counter()
    run()
    wait_for_gpu()
    return time.perf_counter() - started


def wait_for_gpu() -> None:
    """Wait until a GPU, where one is in use, has done what was asked of it."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def fastest(candidates: Mapping[int, Callable[[], object]], trials: int = 1) -> int:
    """The batch size or token budget that is fastest in the best of a few trials."""
    best = {size: float("inf") for size in candidates}
    for _ in range(trials):
        for size, run in candidates.items():
            best[size] = min(best[size], measure(run))
    return min(best, key=best.__getitem__)


def summarize(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """How many times as fast as theirs ours is: the median of the rounds, least and greatest."""
    ratios = [other / one for one, other in zip(ours, theirs, strict=True)]
    return {"ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}


def begin_table(*titles: str) -> str:
    """The first two lines of a Markdown table."""
    return f"| {' | '.join(titles)} |\n| {' | '.join('---' for _ in titles)} |"


def show_ratio(summary: Mapping[str, Any]) -> str:
    """A ratio as a cell of a table."""
    return f"{summary['ratio']:.2f} × ({summary['low']:.2f}–{summary['high']:.2f})"
