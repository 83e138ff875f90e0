"""The token view tells what each token receives, and how widely it looks."""

import json
import math
from dataclasses import replace

import torch
from tests.closeness import assert_close, close

from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.views.attention import TOKENS
from bertkit.interpret.views.view import ViewInputs

ROUNDING = 6e-4


def test_received_is_what_all_tokens_give(inputs):
    received = torch.tensor(TOKENS.collect(inputs)["received"])
    assert received.shape == (2, 2, 9)
    for layer, found in zip(inputs.observation.layers, received, strict=True):
        assert_close(found, layer.weights.sum(dim=1), within=ROUNDING)
    assert received.sum(dim=-1).flatten().tolist() == close([9] * 4, within=9 * ROUNDING)


def test_a_token_that_looks_at_one_or_at_all_has_the_least_or_most_entropy(inspected):
    scores, vectors = torch.zeros(2, 4, 4), torch.eye(4).expand(2, -1, -1)
    scores[:, 1, 2] = 1e9
    layers = [AttentionHeads(scores, vectors, vectors, None)]  # with these scores, but for a factor
    observation = replace(inspected.observe(inspected.read("the cat")), layers=layers)
    data = TOKENS.collect(ViewInputs(inspected, observation))
    assert data["entropy"][0][0] == close([math.log(4), 0, math.log(4), math.log(4)], within=1e-3)
    assert data["received"][0][0] == [0.75, 0.75, 1.75, 0.75]
    json.dumps(data, allow_nan=False)
