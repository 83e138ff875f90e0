"""`bertkit benchmark`: how fast this machine computes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import pluralize
from bertkit.cli.output import check_standard_output, print_result
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.reports.text import format_percent

if TYPE_CHECKING:
    from bertkit.recipes.pretrain.benchmark import LengthBenchmark, PretrainBenchmark


def benchmark_pretrain(
    *,
    length: Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative=())] = (),
    data: Path | None = None,
    settings: PretrainSettings = PretrainSettings(),
    json: bool = False,
) -> None:
    """Measure how fast this machine pre-trains, and where the time goes.

    Takes the flags of `bertkit pretrain`, takes training steps with them for some seconds at each
    length, and writes nothing. Prints tokens per second (the median of the steps, and between which
    values half of them are), their operations as a share of the fastest matrix product on this
    machine, and the peak of memory. Without --data the text is random.

    If a step needs too much memory, it is measured in more micro-batches, and a line says which
    --accumulate fits.

    **Examples**

        bertkit benchmark pretrain --model base --length 128 512

        bertkit benchmark pretrain --model small --recipe paper --batch-size 256 --json

        bertkit benchmark pretrain --data shards/ --model base --precision bf16

        torchrun --nproc-per-node 8 -m bertkit benchmark pretrain --model base --batch-size 256

    Args:
        length: Maximum lengths to measure; by default --max-length.
        data: Folder that `bertkit prepare` wrote; by default random text with 30,522 words.
        json: Print the result as one JSON object.
    """
    check_standard_output()
    from bertkit.recipes.pretrain.benchmark import benchmark

    print_result(benchmark(settings, length, data), describe, json=json)


def describe(result: "PretrainBenchmark") -> str:
    """Format the result as lines of text."""
    parts = list(result.rows[0].shares)
    heads = ["length", "tokens/s", "half of the steps", "of the peak", "memory", *parts]
    cells = [heads, *map(list_cells, result.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    processes = f" in {result.num_processes} processes" * (result.num_processes > 1)
    title = (
        f"{result.num_parameters:,} parameters on {result.device}{processes}, {result.precision};"
        f" {pluralize(result.batch_size, 'sequence')} per step"
    )
    table = ("  ".join(map(str.rjust, row, widths)) for row in cells)
    notes = (
        f"length {row.max_length}: in {row.accumulate} micro-batches (--accumulate)"
        for row in result.rows
        if row.accumulate > 1
    )
    return "\n".join([title, *table, *notes])


def list_cells(row: "LengthBenchmark") -> list[str]:
    """List the cells of a row of the table."""
    first, third = row.quartiles
    return [
        str(row.max_length),
        f"{row.tokens_per_second:,.0f}",
        f"{first:,.0f} to {third:,.0f}",
        "" if row.share_of_peak is None else format_percent(row.share_of_peak),
        f"{row.peak_memory_bytes / 1e9:.2f} GB",
        *(format_percent(share) for share in row.shares.values()),
    ]
