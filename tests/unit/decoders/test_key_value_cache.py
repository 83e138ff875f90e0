"""What a growing batch remembers, and how much memory that takes."""

import gc
import weakref

import pytest
import torch
from torch import nn

from bertkit.decoders.key_value_cache import KVCache, count_room
from bertkit.nn.packing import PackedBatch


@pytest.fixture
def collected():
    """Nothing but what a test makes is looked through by the garbage collector."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("collected")
def test_rows_are_chosen_a_layer_at_a_time(monkeypatch):
    batch = KVCache(PackedBatch.from_single([[1, 2], [3, 4, 5]]))
    layers = [nn.Identity() for _ in range(3)]
    tokens = torch.arange(5.0).view(5, 1, 1)
    for layer in layers:
        batch.update(layer, tokens, tokens)
    before = [weakref.ref(one) for pair in batch.layers.values() for one in pair]
    num_alive = []

    def choose(self: KVCache, rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        gc.collect()
        num_alive.append(sum(one() is not None for one in before))
        return original(self, rows, chosen)

    original = KVCache.choose
    monkeypatch.setattr(KVCache, "choose", choose)
    batch.select(torch.tensor([1, 1, 0]))
    assert num_alive == [6, 6, 4, 4, 2, 2]
    batch.extend(torch.tensor([6, 7, 8]))
    newest = torch.tensor([6.0, 7.0, 8.0]).view(3, 1, 1)
    keys, _ = batch.update(layers[0], newest, newest)
    assert keys.squeeze().tolist() == [[2, 3, 4, 6], [2, 3, 4, 7], [0, 1, 8, 0]]


def test_room_is_what_is_said():
    batch, layer = KVCache(PackedBatch.from_single([[1], [2]])), nn.Identity()
    batch.update(layer, torch.zeros(2, 1, 1), torch.zeros(2, 1, 1))
    for length in range(2, 100):
        batch.extend(torch.tensor([3, 4]))
        batch.update(layer, torch.zeros(2, 1, 1), torch.zeros(2, 1, 1))
        keys, _ = batch.layers[layer]
        assert keys.shape[2] == count_room(length)
