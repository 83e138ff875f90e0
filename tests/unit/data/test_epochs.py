"""Each epoch has every example once, in an order that follows from the seed alone."""

import numpy as np
import pytest

from bertkit.data.epochs import EpochOrder


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


def test_an_epoch_is_drawn_once(monkeypatch):
    order = EpochOrder(50, 8, seed=1)
    drawn = []
    real = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda key: drawn.append(key) or real(key))
    for step in range(order.steps_per_epoch + 1):
        order.examples(step)
    assert [key[-1] for key in drawn] == [0, 1]
