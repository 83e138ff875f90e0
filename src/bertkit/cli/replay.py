"""`bertkit replay`: recompute a training step whose loss or gradient wasn't finite."""

import json as json_module
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.files import with_nulls
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import shorten

if TYPE_CHECKING:
    from bertkit.recipes.pretrain.replay import Replay

MOST_NAMES = 8
MOST_CHARACTERS = 100


def replay(dump: Path, /, *, fp64: bool = False, json: bool = False) -> None:
    """Recompute a training step whose loss or gradient wasn't finite.

    `bertkit pretrain` dumps the first few such steps of a run. The step is recomputed with the same
    weights, batch and dropout, and not applied: prints its loss, the first module whose output
    isn't finite, the parameters whose gradient isn't, and the texts.

    **Examples**

        bertkit replay run/dumps/step-00001234

        bertkit replay run/dumps/step-00001234 --fp64

    Args:
        dump: Folder of the dump.
        fp64: Compute in 64 bits; values that become finite were too large for the run's precision.
        json: Print the result as one JSON object; numbers that aren't finite are null.
    """
    check_standard_output()
    from bertkit.recipes.pretrain.replay import replay as run

    result = run(dump, fp64=fp64)
    if json:
        print(json_module.dumps(with_nulls(asdict(result)), allow_nan=False))
        return
    print("\n".join(describe_replay(result, fp64=fp64)))


def describe_replay(result: "Replay", *, fp64: bool) -> list[str]:
    """List the lines of the report."""
    metrics = ", ".join(f"{name} {value:g}" for name, value in result.metrics.items())
    lines = [f"step {result.step:,}{' in 64 bits' * fp64}: {metrics}"]
    if not fp64:
        lines.append(_compare(result))
    elif result.is_finite:
        lines.append(
            "The result is finite in float64, so a value overflowed in the run's precision."
        )
    if result.first_module is not None:
        name, micro_batch = result.first_module
        lines.append(
            f"first module with an output that isn't finite: {name} (micro-batch {micro_batch})"
        )
    elif not result.is_finite:
        broken = [name for name, value in result.metrics.items() if not math.isfinite(value)]
        lines.append(f"the output of every module is finite; not finite: {', '.join(broken)}")
    for what, names in (("weights", result.broken_weights), ("gradients", result.broken_gradients)):
        more = f", and {len(names) - MOST_NAMES} more" * (len(names) > MOST_NAMES)
        lines.append(f"{what} that aren't finite: {', '.join(names[:MOST_NAMES]) or 'none'}{more}")
    lines.append("examples, as epoch/shard/index and masked text:")
    return lines + [
        f"  {example.name}  {shorten(example.text, MOST_CHARACTERS)}" for example in result.examples
    ]


def _compare(result: "Replay") -> str:
    if result.is_same:
        return "Identical to the run, bit for bit."
    recorded = ", ".join(f"{name} {value:g}" for name, value in result.recorded.items())
    if not result.differences:
        return f"In the run it was {recorded}, although software and machine are the same."
    return f"In the run it was {recorded}. Differences: {'; '.join(result.differences)}."
