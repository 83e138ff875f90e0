"""Perplexity is a number, whatever the loss."""

import math

import pytest

from bertkit.metrics.perplexity import find_bits_per_character, find_perplexity


@pytest.mark.parametrize(("loss", "perplexity"), [(0.0, 1.0), (math.log(8.0), 8.0)])
def test_it_is_among_how_many_words_a_model_is_in_doubt(loss, perplexity):
    assert find_perplexity(loss) == pytest.approx(perplexity)


def test_the_greatest_loss_has_one_too():
    assert 1e43 < find_perplexity(101.0) == find_perplexity(math.inf) < 1e44


def test_bits_per_character_do_not_depend_on_how_a_text_is_cut_into_tokens():
    letters = find_bits_per_character(math.log(2), num_tokens=12, num_characters=12)
    words = find_bits_per_character(4 * math.log(2), num_tokens=3, num_characters=12)
    assert letters == pytest.approx(1.0)
    assert words == pytest.approx(letters)
