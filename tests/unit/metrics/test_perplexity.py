"""Perplexity is a number, whatever the loss."""

import math

import pytest

from bertkit.metrics.perplexity import find_perplexity


@pytest.mark.parametrize(("loss", "perplexity"), [(0.0, 1.0), (math.log(8.0), 8.0)])
def test_it_is_among_how_many_words_a_model_is_in_doubt(loss, perplexity):
    assert find_perplexity(loss) == pytest.approx(perplexity)


def test_the_greatest_loss_has_one_too():
    assert 1e43 < find_perplexity(101.0) == find_perplexity(math.inf) < 1e44
