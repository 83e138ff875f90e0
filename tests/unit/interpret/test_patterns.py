"""Known patterns are found where they were planted."""

import math

import pytest
import torch
from tests.closeness import close

from bertkit.interpret.patterns import find_patterns, list_patterns
from bertkit.nn.masks import CAUSAL

PATTERNS = list_patterns()
TOKENS = ["[CLS]", "the", "cat", "saw", "the", "hat", "[SEP]"]
LENGTH = len(TOKENS)


def planted(name):
    """Attention as a head with that pattern alone would have it; what has no place looks around."""
    target = PATTERNS[name](TOKENS, TOKENS).float()
    target[target.sum(dim=1) == 0] = 1.0
    return target / target.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_planted_pattern_is_named(name):
    (pattern,) = find_patterns(planted(name)[None], TOKENS)
    assert pattern.name == name
    assert pattern.shares[name] == close(1.0, "float32")
    assert max(share for other, share in pattern.shares.items() if other != name) < 0.5


def test_attention_without_a_pattern_is_broad_or_mixed():
    (pattern,) = find_patterns(torch.full((1, LENGTH, LENGTH), 1 / LENGTH), TOKENS)
    assert pattern.name == "broad"
    assert pattern.entropy == close(math.log(LENGTH), "float32")
    weights = torch.zeros(1, LENGTH, LENGTH)
    weights[:, :, 2] = 1.0
    (pattern,) = find_patterns(weights, TOKENS)
    assert pattern.name == "mixed"
    assert pattern.entropy == 0.0


ALLOWED = CAUSAL.find_allowed(LENGTH, LENGTH)


def find_causal(weights):
    return find_patterns(weights[None], TOKENS, allowed=ALLOWED)[0]


@pytest.mark.parametrize("name", ["previous", "itself", "[CLS]", "same word"])
def test_a_planted_pattern_is_named_left_to_right(name):
    target = PATTERNS[name](TOKENS, TOKENS).float().tril()
    target[target.sum(dim=1) == 0] = 1.0
    weights = target.tril() / target.tril().sum(dim=1, keepdim=True)
    if name == "same word":
        weights[2:4] = ALLOWED[2:4] / ALLOWED[2:4].sum(dim=1, keepdim=True)
    pattern = find_causal(weights)
    assert pattern.shares[name] == close(1.0, "float32")
    assert pattern.name == name


def test_left_to_right_even_attention_is_broad_though_first_tokens_see_few():
    pattern = find_causal(ALLOWED / ALLOWED.sum(dim=1, keepdim=True))
    assert pattern.name == "broad"
    assert "next" not in pattern.shares
    assert pattern.entropy == close(sum(map(math.log, range(1, 8))) / 7, "float32")


def test_left_to_right_a_lone_last_token_is_no_pattern_and_the_first_has_no_choice():
    weights = torch.zeros(LENGTH, LENGTH)
    weights[0, 0] = 1.0
    for token in range(1, LENGTH):
        weights[token, max(0, token - 2)] = 1.0
    weights[LENGTH - 1] = torch.eye(LENGTH)[LENGTH - 1]
    pattern = find_causal(weights)
    assert pattern.shares["[SEP]"] == 0.0
    assert pattern.shares["itself"] == close(1 / 6, "float32")
    assert pattern.shares["[CLS]"] == close(2 / 6, "float32")


def test_one_text_that_looks_at_another_has_patterns_of_names_alone():
    others = ["[CLS]", "le", "cat", "[SEP]"]
    weights = torch.zeros(3, LENGTH, 4)
    weights[0, :, 3] = 1.0
    weights[1, :, 1] = 1.0
    weights[1, 2] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    weights[2] = 0.25
    last, same, broad = find_patterns(weights, TOKENS, others)
    assert last.name == "[SEP]"
    assert last.shares == {"[CLS]": 0.0, "[SEP]": 1.0, "same word": 0.0}
    assert same.name == "same word"  # of the one word that both have
    assert broad.name == "broad"
    assert broad.entropy == close(math.log(4), "float32")
