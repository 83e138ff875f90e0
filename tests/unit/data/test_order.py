"""Each epoch has every example once, in an order that follows from the seed alone."""

import itertools
import random

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.data.order import DistinctOrder, EpochOrder, ExampleOrder


@pytest.mark.parametrize(
    ("num_examples", "batch_size", "steps"), [(10, 3, 4), (9, 3, 3), (1, 32, 1), (5, 1, 5)]
)
def test_an_epoch_has_every_example_once(num_examples, batch_size, steps):
    order = EpochOrder(num_examples, batch_size, seed=7)
    assert order.steps_per_epoch == steps
    epochs = []
    for epoch in range(3):
        batches = [order.examples(epoch * steps + step) for step in range(steps)]
        sizes = {len(batch) for batch in batches[:-1]}
        assert sizes <= {batch_size}
        assert 0 < len(batches[-1]) <= batch_size
        epochs.append(np.concatenate(batches))
        assert epochs[-1].dtype == np.int64
        assert sorted(epochs[-1].tolist()) == list(range(num_examples))
    if num_examples > 5:
        assert len({tuple(epoch) for epoch in epochs}) == 3


def test_a_step_depends_on_seed_and_step_alone():
    steps = [5, 0, 17, 4, 11, 17]
    forth = EpochOrder(50, 8, seed=1)
    seen = {step: forth.examples(step).tolist() for step in steps}
    for step in reversed(steps):
        assert EpochOrder(50, 8, seed=1).examples(step).tolist() == seen[step]
    assert EpochOrder(50, 8, seed=2).examples(0).tolist() != seen[0]


def rows_of(epoch: int, shard: int) -> np.ndarray:
    """Shard s has 3 + s examples, and one more in odd epochs."""
    count = 3 + shard + epoch % 2
    return np.stack([np.full(count, epoch), np.full(count, shard), np.arange(count)], axis=1)


def build(seed: int = 0, window_tokens: int = 25, **changes) -> ExampleOrder:
    return ExampleOrder([10] * 5, rows_of, seed=seed, window_tokens=window_tokens, **changes)


def test_an_epoch_has_each_example_once_and_the_row_of_its_plan():
    examples = list(build().first_epoch())
    names = {(e.key.shard, e.key.index) for e in examples}
    assert len(examples) == len(names) == 3 + 4 + 5 + 6 + 7
    assert all(e.row.tolist() == [e.key.epoch, e.key.shard, e.key.index] for e in examples)


def test_any_place_can_be_asked_for_in_any_order():
    straight = build().examples(0, 120)
    order = build()
    for start in (100, 3, 57, 0, 110):
        again = order.examples(start, 10)
        assert [e.key for e in again] == [e.key for e in straight[start : start + 10]]
    assert {e.key.epoch for e in straight} >= {0, 1, 2, 3}
    assert [e.key for e in build(1).examples(0, 25)] != [e.key for e in straight[:25]]
    names = [(e.key.shard, e.key.index) for e in straight]
    assert names[:25] != names[25:50]


def test_windows_of_equal_size_are_shuffled_differently():
    def plan(epoch, shard):
        return np.zeros((50, 1), dtype=np.int64)

    keys = [each.key for each in ExampleOrder([10] * 2, plan, 0, window_tokens=10).first_epoch()]
    first, second = ([key.index for key in keys[start : start + 50]] for start in (0, 50))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def test_only_the_shards_of_a_window_are_planned_at_once():
    planned = []

    def plan(epoch, shard):
        planned.append(shard)
        return rows_of(epoch, shard)

    ExampleOrder([10] * 5, plan, seed=0, window_tokens=20).examples(0, 1)
    assert len(planned) == 2
    planned.clear()
    next(ExampleOrder([10] * 5, plan, seed=0, window_tokens=20).first_epoch())
    assert len(planned) == 2


def test_unshuffled_keeps_the_order_of_the_text():
    examples = build(is_shuffled=False).first_epoch()
    names = [(e.key.shard, e.key.index) for e in examples]
    assert names == sorted(names)


def test_shards_without_an_example_are_an_error_and_not_an_endless_search():
    order = ExampleOrder([1, 1], lambda _e, _s: np.empty((0, 5), dtype=np.int64), seed=0)
    with pytest.raises(InputError, match="too short to pair"):
        order.examples(0, 1)


def draw_steps(order):
    return [order.examples(step).tolist() for step in range(order.steps_per_epoch)]


def shares_a_row(one, other, rows):
    """Whether a passage of one example is the other's query's own in any row."""
    answers = {(query, passages[0]) for query, passages in rows}
    return any((one[0], passage) in answers for passage in other[1])


def count_shared(order, rows):
    pairs = (itertools.permutations(step, 2) for step in draw_steps(order))
    return sum(shares_a_row(rows[one], rows[other], rows) for step in pairs for one, other in step)


def test_no_step_has_a_passage_that_answers_another_query_of_it():
    choose = random.Random(0)
    rows = [
        (f"q{choose.randrange(110)}", [f"p{choose.randrange(250)}" for _ in range(1 + number % 3)])
        for number in range(150)
    ]
    order, plain = DistinctOrder(rows, 8, seed=5), EpochOrder(150, 8, seed=5)
    assert count_shared(order, rows) == order.num_unplaced == 0
    assert count_shared(plain, rows) > 10


def test_an_order_of_queries_is_one_of_all_examples_and_a_function_of_seed_and_step():
    rows = [(f"q{number // 2}", (f"p{number % 7}",)) for number in range(50)]
    order = DistinctOrder(rows, 4, seed=5)
    steps = draw_steps(order)
    assert sorted(itertools.chain(*steps)) == list(range(50))
    assert [len(step) for step in steps] == [4] * 12 + [2]
    again = DistinctOrder(rows, 4, seed=5)
    assert [again.examples(step).tolist() for step in (20, 3)] == [
        order.examples(20).tolist(),
        steps[3],
    ]
    assert draw_steps(DistinctOrder(rows, 4, seed=6)) != steps


def test_examples_of_one_query_alone_are_counted():
    order = DistinctOrder([("q", (f"p{number}",)) for number in range(40)], 4, seed=0)
    assert sorted(itertools.chain(*draw_steps(order))) == list(range(40))
    assert order.num_unplaced == 30
