"""What planning costs a training process, in seconds of one processor."""

import time
from pathlib import Path

import numpy as np

from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from peaks import read_status
from rank_planners import NUM_DISTINCT, SEED, Planner, draw_corpus


def measure_seeking(planner: Planner) -> dict[str, float]:
    """Measure how long a process that has just started takes to find an example of the last window.

    The epoch's number of examples is estimated from a few shards.
    """
    shards = planner.objective.shards
    sampled = [len(planner.plan(0, shard)) for shard in range(min(len(shards), NUM_DISTINCT))]
    place = int(0.98 * len(shards) * np.mean(sampled))
    order = planner.start_order(is_planned=False)
    started = time.process_time()
    assert order.example(place).key.epoch == 0
    seconds = time.process_time() - started
    num_tokens = sum(shard.num_tokens for shard in shards)
    return {"tokens": num_tokens, "seconds": seconds, "tokens_per_second": num_tokens / seconds}


def measure_grouping(num_shards: int, shards_per_window: int) -> dict[str, float]:
    """Measure the part of seeking that grows with the square of the corpus: grouping the shards.

    Each shard has one example, so that planning costs nothing.
    """
    row = np.zeros((1, 1), dtype=np.int64)
    order = ExampleOrder(
        [1] * num_shards, lambda _epoch, _shard: row, SEED, window_tokens=shards_per_window
    )
    windows = max(1, min(8, num_shards // shards_per_window))
    started = time.process_time()
    order.examples(windows * shards_per_window - 1, 1)
    seconds = time.process_time() - started
    return {"shards": num_shards, "seconds_per_window": seconds / windows}


def measure_batches(planner: Planner, batch_size: int = 256) -> dict[str, float]:
    order = planner.start_order()
    planner.objective.batch(order.examples(0, batch_size))
    started = time.process_time()
    batch = planner.objective.batch(order.examples(batch_size, batch_size))
    seconds = time.process_time() - started
    return {"tokens_per_second": batch.num_tokens / seconds}


def measure_window(data: Path, num_tokens: int, max_length: int) -> dict[str, float]:
    """Plan a window, and measure seconds and the increase of the process's peak memory.

    Call it in a process of its own.
    """
    shards = ShardSet.open(data)
    corpus = draw_corpus(num_tokens)
    planner = Planner.over(corpus, shards.load_tokenizer(), max_length=max_length)
    size = sum(shard.num_tokens for shard in corpus)
    order = planner.with_window(2 * size).start_order(is_planned=False)
    before = read_status("VmHWM")
    started = time.process_time()
    order.examples(0, 1)
    seconds = time.process_time() - started
    return {
        "max_length": max_length,
        "tokens": size,
        "seconds": seconds,
        "peak_bytes": read_status("VmHWM") - before,
    }
