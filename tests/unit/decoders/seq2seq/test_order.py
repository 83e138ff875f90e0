"""Each epoch has every example once, in steps within a budget of tokens."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.base.errors import InputError
from bertkit.decoders.seq2seq.order import TokenBatchOrder

LENGTHS = st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=60)


@settings(max_examples=30)
@given(LENGTHS, st.integers(min_value=1, max_value=50), st.integers(min_value=0, max_value=9))
def test_an_epoch_has_every_example_once_and_no_step_goes_over_the_budget(lengths, budget, seed):
    order = TokenBatchOrder(lengths, budget, seed)
    for epoch in range(3):
        steps = range(order.first_step(epoch), order.first_step(epoch + 1))
        assert len(steps) == order.steps_per_epoch(epoch)
        batches = [order.examples(step).tolist() for step in steps]
        assert sorted(itertools.chain.from_iterable(batches)) == list(range(len(lengths)))
        sizes = [sum(lengths[number] for number in batch) for batch in batches]
        assert all(
            size <= budget or len(batch) == 1 for size, batch in zip(sizes, batches, strict=True)
        )
        # No step ends while the next example would still fit.
        assert all(
            size + lengths[following[0]] > budget
            for size, following in zip(sizes[:-1], batches[1:], strict=True)
        )


@settings(max_examples=30)
@given(LENGTHS, st.lists(st.integers(min_value=0, max_value=200), min_size=1, max_size=12))
def test_a_step_is_the_same_in_whatever_order_steps_are_asked_for(lengths, asked):
    order = TokenBatchOrder(np.array(lengths, dtype=np.int32), 30, seed=1)
    seen = {step: order.examples(step).tolist() for step in asked}
    for step in reversed(asked):
        assert order.examples(step).tolist() == seen[step]
        assert TokenBatchOrder(lengths, 30, seed=1).examples(step).tolist() == seen[step]


def test_epochs_and_seeds_differ():
    order = TokenBatchOrder([10] * 50, 100, seed=1)
    assert [order.steps_per_epoch(epoch) for epoch in range(3)] == [5, 5, 5]
    assert [order.epoch_of(step) for step in (0, 4, 5, 14, 15)] == [0, 0, 1, 2, 3]
    first = order.examples(0)
    assert first.dtype == np.int64
    assert len(first) == 10
    assert first.tolist() != order.examples(5).tolist()
    assert first.tolist() != TokenBatchOrder([10] * 50, 100, seed=2).examples(0).tolist()


def test_no_examples_are_an_error_and_not_an_endless_search():
    with pytest.raises(InputError, match="no examples"):
        TokenBatchOrder([], 100, seed=0)
