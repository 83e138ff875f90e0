"""Simulates how a pre-training run at up to 1,024 ranks takes its examples; no model is trained.

    python benchmarks/simulated_ranks.py --data shards/

The order, the objectives' plans and the division among ranks are those of `bertkit pretrain`. What
is claimed is asserted: each example of an epoch is taken once by one rank; neither order nor masks
nor the weight of a target depend on the number of ranks, also where it changes on the way; one
window is shuffled like a uniform permutation. What is measured is printed: how evenly tokens are
divided, how far several windows are from a uniform permutation, and what planning costs, in seconds
of one processor.

SHARDS are real text. Synthetic shards have sentences of log-normal lengths (median 22 tokens) in
documents of log-normal lengths (median 16 sentences, a long tail); planning reads nothing else.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.data.order import EpochOrder, PlannedExample
from bertkit.data.shards import ShardSet
from bertkit.tasks.objectives.masked_pairs import A_START, A_STOP, B_START, B_STOP
from bertkit.tasks.objectives.objective import Objective
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer
from planning_costs import measure_batches, measure_grouping, measure_seeking, measure_window
from program import build_parser, write_figures
from rank_planners import SEED, Cut, Planner, cut_step, draw_corpus
from turns import begin_table

NUM_SAMPLED_STEPS = 3  # whose batches are made
CRITICAL = 2.5  # times 1/√pairs: the Kolmogorov–Smirnov distance of one uniform draw in 100,000


def list_keys(planner: Planner, start: int, stop: int) -> NDArray[np.int64]:
    """Return epoch, shard and index of the examples at some places, by a planner of its own."""
    keys = (one.key for one in planner.start_order().examples(start, stop - start))
    rows = [(key.epoch, key.shard, key.index) for key in keys]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def take_places(steps: range, batch_size: int, num_ranks: int, cut: Cut) -> list[int]:
    """Return the places that all ranks take in some steps, rank after rank."""
    divided = (cut(range(step * batch_size, (step + 1) * batch_size), num_ranks) for step in steps)
    return list(chain.from_iterable(chain.from_iterable(divided)))


def check_epoch(
    planner: Planner, nums_ranks: Sequence[int], batch_size: int, cut: Cut = cut_step
) -> dict[str, int]:
    """Assert that each example is taken once by one rank, in an order that ranks don't change."""
    counts = planner.count_examples()
    again = planner.objective.plan(0, len(counts) - 1)
    assert np.array_equal(again, planner.plan(0, len(counts) - 1)), "a plan is not a pure function"
    steps = range(-(-sum(counts) // batch_size))
    num_places = len(steps) * batch_size
    keys = list_keys(planner, 0, num_places)
    for num_ranks in nums_ranks:
        places = take_places(steps, batch_size, num_ranks, cut)
        assert places == list(range(num_places)), f"{num_ranks} ranks change what a step has"
        taken = keys[places]
        taken = taken[taken[:, 0] == 0, 1:]
        for shard, count in enumerate(counts):
            times = np.bincount(taken[taken[:, 0] == shard, 1], minlength=count)
            assert len(times) == count, f"{num_ranks} ranks take examples that don't exist"
            assert (times == 1).all(), f"{num_ranks} ranks don't take each example once"
    return {"examples": sum(counts), "steps": len(steps)}


def check_resharding(
    planner: Planner, nums_ranks: Sequence[int], batch_size: int, cut: Cut = cut_step
) -> None:
    """Assert that an order doesn't change where a run resumes with other numbers of ranks."""
    num_steps = -(-sum(planner.count_examples()) // batch_size)
    marks = np.linspace(0, num_steps, len(nums_ranks) + 1).astype(int).tolist()
    parts = []
    for num_ranks, first, stop in zip(nums_ranks, marks[:-1], marks[1:], strict=True):
        start = first * batch_size
        keys = list_keys(planner, start, stop * batch_size)  # as a process that resumes
        places = take_places(range(first, stop), batch_size, num_ranks, cut)
        parts.append(keys[np.array(places) - start])
    whole = list_keys(planner, 0, num_steps * batch_size)
    assert np.array_equal(np.concatenate(parts), whole), "resuming with other ranks changes order"


def check_targets(
    planner: Planner, nums_ranks: Sequence[int], batch_size: int, cut: Cut = cut_step
) -> None:
    """Assert that an example's targets and their number in a step don't depend on the ranks.

    A loss is a mean over the targets of the whole step, so their number is a target's weight.
    """
    order = planner.start_order()
    for step in range(NUM_SAMPLED_STEPS):
        examples = order.examples(step * batch_size, batch_size)
        found = [
            list_targets(planner.objective, cut(examples, num_ranks)) for num_ranks in nums_ranks
        ]
        for counts, labels in found[1:]:
            assert counts == found[0][0], f"the weights of step {step}'s targets depend on ranks"
            assert labels == found[0][1], f"the targets of step {step} depend on ranks"


def list_targets(
    objective: Objective[Any], ranks: Sequence[Sequence[PlannedExample]]
) -> tuple[dict[str, int], list[int]]:
    """Return the number of a step's targets for each loss, and its labels in order."""
    batches = [objective.batch(examples) for examples in ranks if len(examples)]
    counts = {
        name: sum(batch.target_counts[name] for batch in batches)
        for name in batches[0].target_counts
    }
    return counts, list(chain.from_iterable(batch.labels.tolist() for batch in batches))


def check_labeled(num_examples: int, num_ranks: int, batch_size: int, cut: Cut = cut_step) -> None:
    """Assert the same of fine-tuning, whose last step of an epoch may be short."""
    order = EpochOrder(num_examples, batch_size, SEED)
    for epoch in range(2):
        steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
        divided = (cut(order.examples(step).tolist(), num_ranks) for step in steps)
        taken = list(chain.from_iterable(chain.from_iterable(divided)))
        assert sorted(taken) == list(range(num_examples)), "fine-tuning doesn't take each row once"


def count_lengths(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the tokens of masked examples, special ones included."""
    second = rows[:, B_STOP] - rows[:, B_START]
    return rows[:, A_STOP] - rows[:, A_START] + 2 + second + (second > 0)


def measure_balance(
    planner: Planner, num_ranks: int, per_rank: int, cut: Cut = cut_step
) -> dict[str, float]:
    """Measure how long ranks wait for the one with the most tokens, in steps of one epoch."""
    batch_size = num_ranks * per_rank
    num_steps = max(1, min(50, sum(planner.count_examples()) // batch_size))
    examples = planner.start_order().examples(0, num_steps * batch_size)
    lengths = count_lengths(np.stack([one.row for one in examples]))
    waiting = []
    for step in range(num_steps):
        ranks = cut(range(step * batch_size, (step + 1) * batch_size), num_ranks)
        tokens = [int(lengths[places].sum()) for places in ranks]
        waiting.append(1.0 - np.mean(tokens) / max(tokens))
    return {"ranks": num_ranks, "per_rank": per_rank, "waiting": float(np.mean(waiting))}


def measure_shuffling(planner: Planner, batch_size: int) -> dict[str, float]:
    """Compare the places of neighboring examples of a document with a uniform permutation.

    There the distance of two places, as a share x of the epoch, is at most x in 2x - x² of cases.
    """
    counts = planner.count_examples()
    total = sum(counts)
    keys = list_keys(planner, 0, total)
    assert (keys[:, 0] == 0).all(), "the first epoch ends too early"
    starts = np.cumsum([0, *counts])
    places = np.empty(total, dtype=np.int64)
    places[starts[keys[:, 1]] + keys[:, 2]] = np.arange(total)
    distances = np.concatenate(
        [
            np.abs(np.diff(places[start:stop]))[are_neighbors(planner, shard)]
            for shard, (start, stop) in enumerate(pairwise(starts))
        ]
    )
    shares = np.sort(distances / total)
    ideal = 2 * shares - shares**2
    ranks = np.arange(len(shares) + 1) / len(shares)
    return {
        "pairs": len(distances),
        "mean_distance": float(shares.mean()),  # 1/3 if uniform
        "greatest_difference": float(max((ranks[1:] - ideal).max(), (ideal - ranks[:-1]).max())),
        # Two places in the same step, relative to how often that happens if uniform.
        "same_step": float((1.0 - distances / batch_size).clip(min=0).mean())
        / ((batch_size - 1) / (total - 1)),
    }


def are_neighbors(planner: Planner, shard: int) -> NDArray[np.bool_]:
    """Return whether each example but the last of a shard is followed by one of its document."""
    source = planner.objective.shards[shard]
    begins = np.asarray(source.sentence_offsets)[np.asarray(source.document_offsets)]
    documents = np.searchsorted(begins, planner.plan(0, shard)[:, A_START], side="right")
    found: NDArray[np.bool_] = documents[1:] == documents[:-1]
    return found


def check_shuffling(planner: Planner, batch_size: int) -> dict[str, float]:
    """Assert that a single window is shuffled like a uniform permutation."""
    found = measure_shuffling(planner, batch_size)
    limit = CRITICAL / found["pairs"] ** 0.5
    assert found["greatest_difference"] < limit, "one window isn't shuffled uniformly"
    return found


def main() -> None:
    arguments = parse_arguments()
    data = ShardSet.open(arguments.data)
    tokenizer = data.load_tokenizer()
    corpora: dict[str, list[Any]] = {
        "real": list(data.train),
        "synthetic": draw_corpus(arguments.tokens[0]),
    }
    checks = run_checks(corpora, tokenizer, arguments)
    balance = run_balance(corpora, tokenizer, arguments)
    shuffling = run_shuffling(corpora, tokenizer, arguments)
    write_figures(
        arguments.output,
        checks=checks,
        balance=balance,
        shuffling=shuffling,
        costs=run_costs(data, tokenizer, arguments),
    )


def parse_arguments() -> argparse.Namespace:
    parser = build_parser(__doc__, "simulated_ranks.json", data=None)
    parser.add_argument("--data", type=Path, required=True, help="shards")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 8, 64, 1024])
    parser.add_argument("--per-rank", type=int, nargs="+", default=[4, 32, 128])
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument(
        "--tokens", type=lambda word: int(float(word)), nargs="+", default=[10**8, 10**9]
    )
    parser.add_argument("--shards", type=int, nargs="+", default=[2_500, 25_000, 250_000])
    parser.add_argument("--windows", type=int, nargs="+", default=[4, 16])
    return parser.parse_args()


def run_checks(
    corpora: dict[str, list[Any]],
    tokenizer: Tokenizer,
    arguments: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Assert for both corpora and all objectives what the documentation claims."""
    most = max(arguments.ranks)
    batch_size = most * min(arguments.per_rank)
    rows = []
    for name, shards in corpora.items():
        for objective in OBJECTIVES:
            planner = Planner.over(
                shards, tokenizer, objective=objective, max_length=min(arguments.lengths)
            )
            found = check_epoch(planner, arguments.ranks, batch_size)
            check_resharding(planner, [most, max(1, most // 2), most], batch_size)
            if name == "real":
                check_targets(planner, arguments.ranks, batch_size)
            rows.append({"corpus": name, "objective": objective, **found})
            print(
                f"{name}, {objective}: {found['examples']:,} examples, each taken once", flush=True
            )
    for num_ranks in arguments.ranks:
        check_labeled(10 * most + 1, num_ranks, 2 * most)
    return rows


def run_balance(
    corpora: dict[str, list[Any]],
    tokenizer: Tokenizer,
    arguments: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Measure the balance at each length, number of ranks and of sequences."""
    print("\n" + begin_table("corpus", "length", "ranks", "sequences a rank", "waiting"))
    rows = []
    for name, shards in corpora.items():
        for max_length in arguments.lengths:
            planner = Planner.over(shards, tokenizer, max_length=max_length)
            for num_ranks in (number for number in arguments.ranks if number > 1):
                for per_rank in arguments.per_rank:
                    found = measure_balance(planner, num_ranks, per_rank)
                    rows.append({"corpus": name, "max_length": max_length, **found})
                    print(
                        f"| {name} | {max_length} | {num_ranks} | {per_rank} |"
                        f" {found['waiting']:.1%} |",
                        flush=True,
                    )
    return rows


def run_shuffling(
    corpora: dict[str, list[Any]],
    tokenizer: Tokenizer,
    arguments: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Measure the order of one and of several windows, each of whole shards."""
    print("\n" + begin_table("corpus", "windows", "mean distance", "difference", "in one step"))
    total = arguments.tokens[0]
    corpora["synthetic"] = draw_corpus(total, total // (4 * max(arguments.windows)))
    rows = []
    for name, shards in corpora.items():
        whole = Planner.over(shards, tokenizer, max_length=min(arguments.lengths))
        size = sum(shard.num_tokens for shard in shards)
        numbers = [number for number in arguments.windows if 4 * number <= len(shards)]
        batch_size = max(2, min(4096, sum(whole.count_examples()) // 64))
        found = [check_shuffling(whole.with_window(2 * size), batch_size)]
        most = max(shard.num_tokens for shard in shards)
        found += [
            measure_shuffling(whole.with_window(most * -(-len(shards) // number)), batch_size)
            for number in numbers
        ]
        for windows, row in zip([1, *numbers], found, strict=True):
            rows.append({"corpus": name, **row, "windows": windows})
            print(
                f"| {name} | {windows} | {row['mean_distance']:.3f} |"
                f" {row['greatest_difference']:.3f} | {row['same_step']:.2f} × |",
                flush=True,
            )
    return rows


def run_costs(
    data: ShardSet, tokenizer: Tokenizer, arguments: argparse.Namespace
) -> dict[str, list[dict[str, float]]]:
    """Measure time and memory of planning."""
    seeking = [
        {
            "max_length": max_length,
            **measure_seeking(
                Planner.over(draw_corpus(num_tokens), tokenizer, max_length=max_length)
            ),
        }
        for num_tokens in arguments.tokens
        for max_length in arguments.lengths
    ]
    batches = [
        {
            "max_length": max_length,
            **measure_batches(Planner.over(data.train, tokenizer, max_length=max_length)),
        }
        for max_length in arguments.lengths
    ]
    context = get_context("spawn")
    windows = []
    for max_length in arguments.lengths:  # each in a process of its own
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            work = pool.submit(measure_window, arguments.data, arguments.tokens[0], max_length)
            windows.append(work.result())
    grouping = [measure_grouping(number, 25) for number in arguments.shards]
    for row in seeking:
        print(
            f"seeking {row['tokens']:,} tokens (length {row['max_length']}): {row['seconds']:.1f} s"
        )
    for row in windows:
        print(f"a window of {row['tokens']:,}: {row['seconds']:.1f} s, {row['peak_bytes']:,} bytes")
    for row in grouping:
        print(f"grouping {row['shards']:,} shards: {row['seconds_per_window']:.3f} s a window")
    for row in batches:
        print(f"batches (length {row['max_length']}): {row['tokens_per_second']:,.0f} tokens/s")
    return {"seeking": seeking, "windows": windows, "grouping": grouping, "batches": batches}


if __name__ == "__main__":
    main()
