"""The geometry view has the planes of all layers, and the nearest in the full space."""

import json

import torch
from tests.closeness import assert_close, close

from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.contexts import compare_contexts
from bertkit.interpret.geometry import project
from bertkit.interpret.views.measures import GEOMETRY
from bertkit.interpret.views.view import ViewInputs


def build_scene(inspected, *texts):
    return ViewInputs(inspected, inspected.observe(inspected.read(*texts)))


def test_every_layer_has_its_planes(inspected):
    inputs = build_scene(inspected, "the cats saw", "a hat")
    data = GEOMETRY.collect(inputs)
    assert data["words"] == [1, 2, 3, 4, 6, 7]
    assert data["contexts"] is None
    assert len(data["planes"]) == len(data["wordPlanes"]) == 3
    for plane, word_plane, state in zip(
        data["planes"], data["wordPlanes"], inputs.observation.states, strict=True
    ):
        assert plane["shares"] == close(project(state).shares, within=1e-4)
        assert word_plane["shares"] == close(project(state[data["words"]]).shares, within=1e-4)
        distances = torch.cdist(torch.tensor(plane["points"]), torch.tensor(plane["points"]))
        points = project(state).points
        assert_close(distances, torch.cdist(points, points), within=1e-3)


def test_the_nearest_are_other_words_by_their_cosine(inspected):
    inputs = build_scene(inspected, "the cat lost the cat - a dog")
    nearest = GEOMETRY.collect(inputs)["nearest"]
    states = torch.stack(inputs.observation.states)
    assert [len(layer) for layer in nearest] == [10] * 3
    for layer, state in zip(nearest, states, strict=True):
        for token, found in enumerate(layer):
            cosines = torch.nn.functional.cosine_similarity(state[token], state, dim=-1)
            cosines[[0, token, 9]] = -2
            best = cosines.topk(5)
            assert [other for other, _ in found] == best.indices.tolist()
            assert [cosine for _, cosine in found] == close(best.values.tolist(), within=1e-3)


def test_contexts_are_quoted_and_numbered(inspected):
    contexts = compare_contexts(inspected, "cat", ["the cat saw a hat", "a Cat ."])
    view = AttentionView.of(inspected, "the cat", contexts=contexts)
    found = GEOMETRY.collect(view.inputs)["contexts"]
    assert found["word"] == "cat"
    assert found["places"] == [["the ", "cat", " saw a hat"], ["a ", "Cat", " ."]]
    assert torch.tensor(found["cosines"]).shape == (3, 2, 2)
    assert [layer[0][1] for layer in found["cosines"]] == found["mean"]
    assert len(found["planes"]) == len(found["different"]) == 3
    json.dumps(found, allow_nan=False)
