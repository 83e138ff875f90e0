"""The head and token that a page opens on, from weights that are written down here."""

from dataclasses import replace

import pytest
import torch

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.opening import Start, choose_start, find_candidates, state_finding
from bertkit.interpret.views.view import ViewInputs
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL

TEXT = "the cats saw the dog ."
TOKENS = ["[CLS]", "the", "cat", "##s", "saw", "the", "dog", ".", "[SEP]"]
LAYERS, HEADS = 2, 2


class Heads:
    """Stands for a layer's attention, whose weights are written down."""

    def __init__(self, weights, mask):
        self.weights, self.mask = weights, mask


@pytest.fixture(scope="module")
def observed(inspected):
    inputs = ViewInputs(inspected, inspected.observe(inspected.read(TEXT)))
    assert inputs.observation.encoded.tokens == TOKENS
    return inputs


def weigh(inputs, *entries, mask=BIDIRECTIONAL, without=()):
    """Inputs with uniform weights, but for (layer, head, token, key, weight)."""
    length = len(TOKENS)
    weights = torch.full((LAYERS, HEADS, length, length), 1 / length)
    weights *= mask.find_allowed(length, length)
    weights /= weights.sum(dim=-1, keepdim=True)
    for layer, head, token, key, weight in entries:
        row = weights[layer - 1, head - 1, token]
        row *= (1 - weight) / (1 - row[key])
        row[key] = weight
    layers = [Heads(layer, mask) for layer in weights]
    return replace(inputs, observation=replace(inputs.observation, layers=layers, without=without))


def test_the_largest_weight_between_distant_words_is_chosen(observed):
    inputs = weigh(observed, (1, 2, 6, 2, 0.7), (2, 1, 4, 6, 0.6))
    start = choose_start(inputs)
    assert start == Start(1, 2, 6)
    finding = state_finding(inputs, start)
    assert finding.title == "“dog” attends to “cat” with 70.0 % in head 1.2"
    assert finding.in_head.startswith("“dog” in head 1.2: cat 70.0 %, [CLS] 3.8 %, ")
    assert finding.in_other_heads == (
        "“dog” to “cat” in other heads: 1.1 11.1 %, 2.1 11.1 %, 2.2 11.1 %; mean of all 4: 25.8 %"
    )


@pytest.mark.parametrize(
    ("token", "key"),
    [(6, 0), (6, 8), (6, 7), (6, 6), (6, 5), (4, 5), (2, 3), (1, 5), (0, 2), (7, 2)],
    ids=lambda index: TOKENS[index],
)
def test_special_tokens_punctuation_neighbors_pieces_and_same_words_are_passed_over(
    observed, token, key
):
    inputs = weigh(observed, (1, 1, token, key, 0.9), (2, 2, 6, 2, 0.4))
    assert choose_start(inputs) == Start(2, 2, 6)


def test_a_word_that_all_tokens_attend_to_tells_nothing(observed):
    sink = [(1, 1, token, 4, 0.8) for token in range(len(TOKENS))]
    assert choose_start(weigh(observed, *sink, (2, 2, 6, 2, 0.5))) == Start(2, 2, 6)


def test_a_selection_is_completed_and_switched_off_heads_are_passed_over(observed):
    entries = (1, 2, 6, 2, 0.7), (2, 1, 4, 6, 0.6), (2, 2, 2, 6, 0.3)
    inputs = weigh(observed, *entries)
    assert choose_start(inputs, layer=2) == Start(2, 1, 4, is_mean=False)
    assert choose_start(inputs, layer=2, head=2) == Start(2, 2, 2, is_mean=False)
    assert choose_start(inputs, token=4) == Start(2, 1, 4)
    off = weigh(observed, *entries, without=(HeadName(1, 2),))
    assert choose_start(off) == Start(2, 1, 4)


def test_a_token_without_words_to_attend_to_opens_as_before(observed):
    inputs = weigh(observed, mask=CAUSAL)
    assert choose_start(inputs, layer=1, token=1) == Start(1, None, 1, is_mean=False)
    assert state_finding(inputs, Start(1, None, 1)) is None
    assert state_finding(inputs, Start(1, 1, 1)) is None


def test_left_to_right_words_are_compared_with_what_those_after_them_give(observed):
    inputs = weigh(observed, (2, 1, 6, 2, 0.5), mask=CAUSAL)
    assert choose_start(inputs) == Start(2, 1, 6)
    assert not find_candidates(inputs)[6, 7]
    sink = [(1, 1, token, 4, 0.95) for token in range(5, len(TOKENS))]
    inputs = weigh(observed, *sink, (2, 2, 6, 2, 0.4), mask=CAUSAL)
    assert choose_start(inputs) == Start(2, 2, 6)


def test_distant_pieces_of_one_word_are_passed_over(inspected):
    inputs = ViewInputs(inspected, inspected.observe(inspected.read("the catss saw the dog .")))
    assert inputs.observation.encoded.tokens[2:6] == ["cat", "##s", "##s", "saw"]
    are_candidates = find_candidates(inputs)
    assert not are_candidates[2, 4]
    assert are_candidates[2, 5]
