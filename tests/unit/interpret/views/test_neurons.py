"""The neuron view's numbers: what the page stores is near to what the model computed."""

import math

import torch
from tests.closeness import assert_close

from bertkit.interpret.build import build_page


def test_scores_of_the_stored_vectors_are_near_to_the_models(inputs):
    page = build_page(inputs, ["neurons"])
    for number, layer in enumerate(inputs.observation.layers, 1):
        heads, length, features = layer.query.shape
        steps = torch.frombuffer(bytearray(page.arrays[f"vectors-{number}"]), dtype=torch.int16)
        scales = torch.tensor(page.data["scales"][number - 1])
        stored = steps.view(3, heads, length, features) * scales[:, :, None, None]
        scores = stored[0] @ stored[1].transpose(-2, -1) / math.sqrt(features)
        # each number is off by half a step at most
        off = stored[0].abs().sum(-1)[:, :, None] * scales[1, :, None, None]
        off = off + stored[1].abs().sum(-1)[:, None, :] * scales[0, :, None, None]
        step = off / math.sqrt(features)
        assert_close(scores / step, layer.scores / step, within=0.51)
        assert_close(scores.softmax(-1), layer.weights, within=0.02)
