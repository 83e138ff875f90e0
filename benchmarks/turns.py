"""Measuring several sides in one process, in turns, and what is told of it."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    wait_for_gpu()
    started = time.perf_counter()
    run()
    wait_for_gpu()
    return time.perf_counter() - started


def wait_for_gpu() -> None:
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
    return spread([other / one for one, other in zip(ours, theirs, strict=True)], "ratio")


def spread(values: Sequence[float], middle: str = "median") -> dict[str, float]:
    return {middle: statistics.median(values), "low": min(values), "high": max(values)}


def compare_rates(
    seconds: Mapping[str, Sequence[float]],
    amount: float,
    unit: str,
    ours: Sequence[str],
    peers: Sequence[str],
) -> dict[str, Any]:
    """The median speed of each side in units a second, and ours beside each peer.

    Args:
        seconds: of each side in each round.
        amount: what a side does in a round, in units.
        unit: what is counted, in the plural.
        ours: sides of bertkit.
        peers: sides that these are compared with.
    """
    return {
        f"{unit}_per_second": {
            name: amount / statistics.median(values) for name, values in seconds.items()
        },
        "ratios": {
            name: {peer: summarize(seconds[name], seconds[peer]) for peer in peers if peer != name}
            for name in ours
        },
    }


def describe_rates(label: str, result: Mapping[str, Any], unit: str) -> Iterator[str]:
    """What `compare_rates` found as lines of a table, a side a row."""
    for name, speed in result[f"{unit}_per_second"].items():
        ratios = result["ratios"].get(name, {}).values()
        num_peers = max(map(len, result["ratios"].values()))
        cells = [show_ratio(one) for one in ratios] or ["–"] * num_peers
        yield format_row(label, name, f"{speed:,.1f} {unit}/s", *cells)


def begin_table(*titles: str) -> str:
    return f"{format_row(*titles)}\n{format_row(*('---' for _ in titles))}"


def format_row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def show_ratio(summary: Mapping[str, Any]) -> str:
    return f"{summary['ratio']:.2f} × ({summary['low']:.2f}–{summary['high']:.2f})"
