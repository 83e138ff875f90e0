"""The highest scores, held against sorting all."""

import math

import pytest
import torch
from tests.closeness import assert_close

from bertkit.decoders.decoding.beam import find_highest


@pytest.mark.parametrize("num_scores", [3, 64, 1000, 1024, 30_522])
@pytest.mark.parametrize("number", [1, 8, 200])
def test_the_highest_are_those_of_topk(num_scores, number):
    scores = torch.randn(5, num_scores, generator=torch.Generator().manual_seed(number))
    scores[0, -1] = 9.0  # behind the last whole block
    scores[1, :10] = 8.0 + torch.arange(10).flip(0)[: scores.shape[1]] / 100  # in one block
    scores[2, 2:] = -math.inf
    values, places = find_highest(scores, number)
    expected = scores.topk(min(number, num_scores))
    assert_close(values, expected.values)
    assert_close(scores.gather(1, places), values)
    assert all(len(set(row)) == len(row) for row in places.tolist())
    finite = expected.values.isfinite()
    assert_close(places[finite], expected.indices[finite])
