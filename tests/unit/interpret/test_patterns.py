"""Known patterns are found where they were planted."""

import math

import pytest
import torch

from bertkit.interpret.patterns import PATTERNS, find_patterns

TOKENS = ["[CLS]", "the", "cat", "saw", "the", "hat", "[SEP]"]
LENGTH = len(TOKENS)


def planted(name):
    """Attention as a head with that pattern alone would have it; what has no place looks around."""
    target = PATTERNS[name](TOKENS).float()
    target[target.sum(dim=1) == 0] = 1.0
    return target / target.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_planted_pattern_is_named(name):
    (pattern,) = find_patterns(planted(name)[None], TOKENS)
    assert pattern.name == name
    assert pattern.shares[name] == pytest.approx(1.0)
    assert max(share for other, share in pattern.shares.items() if other != name) < 0.5


def test_even_attention_is_broad_and_its_entropy_that_of_the_length():
    (pattern,) = find_patterns(torch.full((1, LENGTH, LENGTH), 1 / LENGTH), TOKENS)
    assert pattern.name == "broad"
    assert pattern.entropy == pytest.approx(math.log(LENGTH), rel=1e-6)


def test_attention_without_a_pattern_is_mixed():
    weights = torch.zeros(1, LENGTH, LENGTH)
    weights[:, :, 2] = 1.0
    (pattern,) = find_patterns(weights, TOKENS)
    assert pattern.name == "mixed"
    assert pattern.entropy == 0.0


def test_a_text_without_a_repeated_word_has_no_share_of_it():
    weights = torch.full((2, 3, 3), 1 / 3)
    first, second = find_patterns(weights, ["[CLS]", "cat", "[SEP]"])
    assert first.shares["same word"] == second.shares["same word"] == 0.0


def test_a_text_of_two_tokens_has_neighbours():
    (pattern,) = find_patterns(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), ["[CLS]", "[SEP]"])
    assert pattern.shares["next"] == 1.0
