"""Buckets and frequencies are those that published models compute with."""

import numpy as np
import pytest
import torch
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from bertkit.nn.positions import MAX_DISTANCE, find_buckets, rotary_frequencies


def test_buckets_are_those_of_mpnet():
    distances = torch.arange(-600, 601)
    expected = MPNetEncoder.relative_position_bucket(distances, num_buckets=32)
    places = distances.clamp(-MAX_DISTANCE, MAX_DISTANCE).numpy() + MAX_DISTANCE
    assert np.array_equal(find_buckets(32)[places], expected.numpy())


@pytest.mark.parametrize("base", [10_000.0, 160_000.0])
@pytest.mark.parametrize("num_features", [2, 8, 32, 64, 80])
def test_frequencies_have_the_bits_of_torchs(base, num_features):
    exponents = torch.arange(0, num_features, 2, dtype=torch.float32) / num_features
    found = torch.from_numpy(rotary_frequencies(base, num_features))
    assert found.dtype == torch.float32
    assert torch.equal(found, 1.0 / base**exponents)
