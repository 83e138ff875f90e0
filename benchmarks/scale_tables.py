"""The tables of docs/scale.md: what memory, communication and data cost on 1 to 1,024 GPUs.

    python benchmarks/scale_tables.py --measure --data shards/
    python benchmarks/scale_tables.py --write docs/scale.md

The first command measures what a CPU can (`results/scale.json`), in seconds of one processor: the
bytes that a block keeps for the backward pass, the size of shards, opening them, and reading a
manifest of many. The second computes the tables from that and from the results of
`simulated_ranks.py` and `bench_prepare.py`, and puts them between the marks on the page; without
`--write` it prints them. Memory and communication are computed from the sizes of the models, and
`ASSUMED` in `model_costs.py` says what nobody measured.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model_costs import ASSUMED, compute_on_cpu, count_sent, find_sizes, list_fixed_bytes
from program import build_parser, write_figures
from scale_measures import (
    measure_blocks,
    measure_manifest,
    measure_opening,
    measure_shards,
    measure_verifying,
)
from turns import begin_table

RESULTS = Path(__file__).parent / "results"
MODELS = ("base", "large")
NUMS_GPUS = (1, 8, 64, 1024)
LENGTHS = (128, 512)
CORPORA = (10**9, 10**10, 10**11, 10**12)  # tokens
BANDWIDTHS = (50, 100, 400)  # GB/s of bus bandwidth
WINDOW_TOKENS = 100_000_000
NUM_CORES = 64
NUM_EXCHANGES = 4  # of a few numbers in a step
GB = 1e9
MARK = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tabulate_memory() -> Iterator[str]:
    """Memory per GPU without activations."""
    yield begin_table("model", "how", "GPUs", "weights", "gradients", "AdamW", "Muon", "together")
    for name in MODELS:
        sizes = find_sizes(name)
        for how in ("DDP", "--fsdp"):
            for num_gpus in NUMS_GPUS[1:] if how == "--fsdp" else ("any",):
                number = num_gpus if isinstance(num_gpus, int) else 1
                (weights, gradients, adamw), (*_, muon) = (
                    list_fixed_bytes(sizes, optimizer, number, is_divided=number > 1)
                    for optimizer in ("adamw", "muon")
                )
                together = weights + gradients + muon
                cells = [show_gb(size) for size in (weights, gradients, adamw, muon, together)]
                yield join_cells(name, how, show_number(num_gpus), *cells)


def tabulate_activations() -> Iterator[str]:
    """Memory of activations, and how many tokens a GPU of 80 GB has room for."""
    yield begin_table(
        "model", "flag", "a token", "of it for masked words", "16,384 tokens", "80 GB have room for"
    )
    for name in MODELS:
        sizes = find_sizes(name)
        fixed = sum(list_fixed_bytes(sizes, "muon", 1, is_divided=False))
        room = 0.9 * 80 * GB - fixed
        each = {"": sizes.bytes_per_token}
        each["--checkpoint-activations"] = sizes.recomputed_bytes_per_token
        for flag, size in each.items():
            yield join_cells(
                name,
                flag,
                f"{size / 1e3:,.0f} kB",
                f"{sizes.words_bytes_per_token / size:.0%}",
                show_gb(16_384 * size),
                f"{int(room / size) // 1000 * 1000:,} tokens",
            )


def tabulate_check(measured: dict[str, Any]) -> Iterator[str]:
    """The formula of a block beside what a CPU keeps."""
    yield begin_table("model", "length", "computed", "measured", "ratio")
    for row in measured["blocks"]:
        computed = compute_on_cpu(find_sizes(row["model"]))
        kept = row["bytes_per_token"]
        ratio = f"{kept / computed:.2f}"
        cells = (f"{computed:,} bytes", f"{kept:,.0f} bytes", ratio)
        yield join_cells(row["model"], str(row["length"]), *cells)


def tabulate_communication() -> Iterator[str]:
    """Time of a step's communication beside that of its computing."""
    yield begin_table(
        "model",
        "how",
        "GPUs",
        "sent a step",
        *(f"at {each} GB/s" for each in BANDWIDTHS),
        "computing",
    )
    for name in MODELS:
        sizes = find_sizes(name)
        computing = ASSUMED["tokens"] / sizes.tokens_per_second(128)
        for how in ("DDP", "--fsdp"):
            for num_gpus in NUMS_GPUS[1:]:
                sent = count_sent(sizes, num_gpus, is_divided=how == "--fsdp")
                times = (show_ms(sent / (each * GB)) for each in BANDWIDTHS)
                cells = (show_number(num_gpus), show_gb(sent), *times, show_ms(computing))
                yield join_cells(name, how, *cells)


def tabulate_speed() -> Iterator[str]:
    """What the assumed speed means."""
    yield begin_table("model", "length", "operations a token", "tokens/s of a GPU", "of 1,024")
    for name in MODELS:
        for length in LENGTHS:
            sizes = find_sizes(name)
            rate = sizes.tokens_per_second(length)
            operations = f"{sizes.operations_per_token(length) / 1e9:.2f} · 10⁹"
            cells = (operations, f"{round(rate, -3):,.0f}", f"{1024 * rate / 1e6:,.0f} million")
            yield join_cells(name, str(length), *cells)


def tabulate_corpora(
    measured: dict[str, Any], simulated: dict[str, Any], prepared: dict[str, Any]
) -> Iterator[str]:
    """What corpora take: storage, preparation, finding an example."""
    yield begin_table(
        "tokens",
        "text",
        "shards",
        "files",
        f"`prepare` on {NUM_CORES} cores",
        "manifest",
        "to read it",
    )
    shards = measured["shards"]
    speeds = {row["side"]: row for row in prepared["results"]}
    speed = 1e6 * speeds["bertkit"]["megabytes_per_processor_second"]
    manifest = measured["manifests"][-1]
    for num_tokens in CORPORA:
        text = num_tokens * shards["text_bytes"] / shards["tokens"]
        num_shards = -(-text // (16 << 20))
        many = num_shards / manifest["shards"]
        yield join_cells(
            show_power(num_tokens),
            show_gb(text),
            show_gb(num_tokens * shards["bytes"] / shards["tokens"]),
            f"{round(3 * num_shards):,}",
            show_time(text / speed / NUM_CORES),
            show_gb(many * manifest["bytes"]),
            f"{show_time(many * manifest['seconds'])}, {show_gb(many * manifest['memory_bytes'])}",
        )


def tabulate_planning(simulated: dict[str, Any], measured: dict[str, Any]) -> Iterator[str]:
    """How long a process takes to find the last example of an epoch, by corpus."""
    yield begin_table(
        "tokens", "windows", *(f"to the last step, length {each}" for each in LENGTHS)
    )
    shards = measured["shards"]
    for num_tokens in CORPORA:
        num_windows = num_tokens // WINDOW_TOKENS
        num_shards = num_tokens * shards["text_bytes"] / shards["tokens"] / (16 << 20)
        times = []
        for length in LENGTHS:
            planning = num_tokens / planning_rate(simulated, length)
            grouping = num_windows * num_shards * grouping_seconds(simulated)
            is_measured = any(
                row["tokens"] > 0.9 * num_tokens for row in simulated["costs"]["seeking"]
            )
            mark = "measured: " if is_measured else ""
            times.append(f"{mark}{show_time(planning + grouping)}")
        yield join_cells(show_power(num_tokens), f"{num_windows:,}", *times)


def planning_rate(simulated: dict[str, Any], length: int) -> float:
    """Return the tokens that a core plans per second, of the largest corpus measured."""
    rows = [row for row in simulated["costs"]["seeking"] if row["max_length"] == length]
    rate: float = max(rows, key=lambda row: row["tokens"])["tokens_per_second"]
    return rate


def grouping_seconds(simulated: dict[str, Any]) -> float:
    """Return the time of grouping one shard for one window."""
    last = simulated["costs"]["grouping"][-1]
    seconds: float = last["seconds_per_window"] / last["shards"]
    return seconds


def tabulate_waiting(simulated: dict[str, Any]) -> Iterator[str]:
    """How long GPUs wait while every rank plans a window, and for the ring of numbers."""
    yield begin_table(
        "GPUs", *(f"planning a window, length {each}" for each in LENGTHS), "exchanging numbers"
    )
    sizes = find_sizes("base")
    for num_gpus in NUMS_GPUS:
        shares = []
        for length in LENGTHS:
            planning = WINDOW_TOKENS / planning_rate(simulated, length)
            training = WINDOW_TOKENS / (num_gpus * sizes.tokens_per_second(length))
            shares.append(f"{planning / (planning + training):.0%}")
        ring = NUM_EXCHANGES * 2 * (num_gpus - 1) * ASSUMED["hop_seconds"]
        step = ASSUMED["tokens"] / sizes.tokens_per_second(128)
        yield join_cells(f"{num_gpus:,}", *shares, f"{ring / (ring + step):.0%}")


def tabulate_balance(simulated: dict[str, Any]) -> Iterator[str]:
    """What share of a step ranks wait for the one with the most tokens."""
    counts = sorted({row["per_rank"] for row in simulated["balance"]})
    yield begin_table("text", "length", "ranks", *(f"{each} sequences a rank" for each in counts))
    found = {
        (row["corpus"], row["max_length"], row["ranks"], row["per_rank"]): row["waiting"]
        for row in simulated["balance"]
    }
    for key in dict.fromkeys(key[:3] for key in found):
        cells = [f"{found[*key, each]:.1%}" for each in counts]
        yield join_cells(key[0], str(key[1]), f"{key[2]:,}", *cells)


def tabulate_shuffling(simulated: dict[str, Any]) -> Iterator[str]:
    """How far windows are from a uniform permutation."""
    yield begin_table(
        "text", "windows", "distance of neighbors", "greatest difference", "in the same step"
    )
    for row in simulated["shuffling"]:
        yield join_cells(
            row["corpus"],
            str(row["windows"]),
            f"{row['mean_distance']:.3f}",
            f"{row['greatest_difference']:.3f}",
            f"{row['same_step']:.1f} ×",
        )


def tabulate_window(simulated: dict[str, Any]) -> Iterator[str]:
    """What a window costs a process."""
    yield begin_table(
        "length", "tokens", "to plan it", "memory while planning", "batches of a core"
    )
    batches = {row["max_length"]: row for row in simulated["costs"]["batches"]}
    for row in simulated["costs"]["windows"]:
        yield join_cells(
            str(row["max_length"]),
            f"{row['tokens'] / 1e6:,.0f} million",
            f"{row['seconds']:.1f} s",
            show_gb(row["peak_bytes"]),
            f"{batches[row['max_length']]['tokens_per_second'] / 1e6:.1f} million tokens/s",
        )


def tabulate_opening(measured: dict[str, Any]) -> Iterator[str]:
    """What opening shards and a checkpoint costs every process."""
    yield begin_table("what each rank does", "measured here", "at the largest size")
    opening, verifying = measured["opening"], measured["verifying"]
    files = 3 * round(
        CORPORA[-1] * measured["shards"]["text_bytes"] / measured["shards"]["tokens"] / (16 << 20)
    )
    each = opening["seconds"] / opening["files"]
    yield join_cells(
        "opens every file of the shards and reads 4 KiB",
        f"{1e6 * each:,.0f} µs a file on a local disk",
        f"{files:,} files: {show_time(files * each)};"
        f" {show_time(files * ASSUMED['open_seconds'])} at 1 ms a file on a shared one",
    )
    size = 12 * find_sizes("large").num_parameters
    yield join_cells(
        "verifies the newest checkpoint before it resumes",
        f"{verifying['bytes_per_second'] / 1e9:.1f} GB/s",
        f"{show_gb(size)} of large with AdamW: {show_time(size / verifying['bytes_per_second'])},"
        f" and {show_gb(1024 * size)} read by 1,024 ranks",
    )


def join_cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def show_gb(size: float) -> str:
    if size >= 999.5 * GB:
        return f"{size / (1000 * GB):,.1f} TB"
    if size < GB / 10:
        return f"{1e3 * size / GB:,.1f} MB"
    return f"{size / GB:.2f} GB" if size < 10 * GB else f"{size / GB:,.0f} GB"


def show_ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms" if seconds < 0.01 else f"{1e3 * seconds:,.0f} ms"


def show_time(seconds: float) -> str:
    for unit, size in (("days", 172_800.0), ("h", 5_400.0), ("min", 90.0)):
        if seconds >= size:
            return f"{seconds / {'days': 86_400.0, 'h': 3600.0, 'min': 60.0}[unit]:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def show_number(number: object) -> str:
    return f"{number:,}" if isinstance(number, int) else str(number)


def show_power(number: int) -> str:
    return "10" + str(len(str(number)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def build_tables() -> dict[str, str]:
    measured, simulated, prepared = (
        json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
        for name in ("scale", "simulated_ranks", "prepare")
    )
    rows: dict[str, Iterator[str]] = {
        "memory": tabulate_memory(),
        "activations": tabulate_activations(),
        "check": tabulate_check(measured),
        "speed": tabulate_speed(),
        "communication": tabulate_communication(),
        "corpora": tabulate_corpora(measured, simulated, prepared),
        "planning": tabulate_planning(simulated, measured),
        "window": tabulate_window(simulated),
        "waiting": tabulate_waiting(simulated),
        "balance": tabulate_balance(simulated),
        "shuffling": tabulate_shuffling(simulated),
        "opening": tabulate_opening(measured),
    }
    return {name: "\n".join(lines) for name, lines in rows.items()}


def fill_in(page: str) -> str:
    """Put the tables between the marks of a page.

    Raises:
        KeyError: the page has a mark for another table.
    """
    tables = build_tables()
    return MARK.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", page)


def main() -> None:
    arguments = parse_arguments()
    if arguments.measure:
        write_figures(
            arguments.output,
            blocks=measure_blocks(tuple(arguments.models), tuple(arguments.lengths)),
            shards=measure_shards(arguments.data),
            manifests=[measure_manifest(arguments.data, each) for each in arguments.shards],
            opening=measure_opening(arguments.data),
            verifying=measure_verifying(arguments.megabytes << 20),
        )
    elif arguments.write:
        page = arguments.write.read_text("utf-8")
        arguments.write.write_text(fill_in(page), "utf-8")
    else:
        for name, table in build_tables().items():
            print(f"{name}\n\n{table}\n")


def parse_arguments() -> argparse.Namespace:
    parser = build_parser(__doc__, "scale.json", data=None)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--data", type=Path, help="shards, to measure")
    parser.add_argument("--models", nargs="+", default=["tiny", "mini", "small"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[*LENGTHS])
    parser.add_argument("--shards", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--write", type=Path, help="page to write the tables into")
    return parser.parse_args()


if __name__ == "__main__":
    main()
