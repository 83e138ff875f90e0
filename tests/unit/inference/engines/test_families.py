"""The graphs of every family give what PyTorch's modules give, for each class of models."""

import random

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.family_models import HEADS, HERE, LENGTHS, build_family_model, draw_ids
from tests.unit.inference.small import arrays_of

from bertkit.inference.engines.openvino_engine import OpenVinoEngine, load_core
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.gradients import follow_gradients
from bertkit.inference.graphs.bert import write_layers
from bertkit.inference.graphs.graph import WORDS
from bertkit.inference.graphs.numpy_graph import NumpyGraph
from bertkit.inference.heads import SUMMARY_SCORES, TOKEN_SCORES
from bertkit.inference.torch_model import find_network

every_family = pytest.mark.parametrize("family", HERE)
HAS_BF16 = "BF16" in load_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def start(model, *arguments):
    return OpenVinoEngine(model.config, arrays_of(model), type(model).__name__, *arguments)


@every_family
@pytest.mark.parametrize("layers", [(0, 1, -2, -1), (2,)])
def test_states_agree_for_batches_of_every_shape(family, layers):
    model, chance = build_family_model(family, "BertModel"), random.Random(7)
    ours, theirs = start(model, layers), TorchEngine(model, layers)
    shapes = [LENGTHS, [1], [60], [23, 23], *([chance.randint(1, 60)] * 3 for _ in range(5))]
    for seed, lengths in enumerate(shapes):
        ids = draw_ids(family, lengths, seed)
        assert_close(ours(ids), theirs(ids))


@pytest.mark.parametrize(("family", "architecture"), HEADS)
def test_heads_agree(family, architecture):
    model = build_family_model(family, architecture)
    ours, theirs, ids = start(model), TorchEngine(model), draw_ids(family, LENGTHS)
    assert_close(ours(ids), theirs(ids))
    assert ours.has_pooler == theirs.has_pooler
    if architecture in {*SUMMARY_SCORES, *TOKEN_SCORES}:
        one = draw_ids(family, [31])
        assert_close(ours.logits(ids), theirs.logits(ids))
        assert_close(ours.logits(one), theirs.logits(one))
    if architecture in {"BertModel", "BertForPreTraining"} and ours.has_pooler:
        assert_close(*(engine.pool(engine(ids)[-1], ids) for engine in (ours, theirs)))
    if "masked_lm.bias" in ours.weights:
        places = np.array([0, 7, 50])
        assert_close(next(ours.score_words(ids, places)), next(theirs.score_words(ids, places)))


@every_family
def test_the_steps_in_numpy_agree(family):
    model = build_family_model(family, "BertModel")
    weights = arrays_of(model)
    engine, ids = start(model, (0, 1, -1)), draw_ids(family, [40])
    graph = NumpyGraph(model.config, weights)
    embedded = engine._embed(ids, slice(None))
    states = write_layers(graph, embedded, model.config.num_hidden_layers)
    assert weights[WORDS].dtype == states[-1].dtype
    assert_close([states[0], states[1], states[-1]], engine(ids))


@every_family
@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_other_precisions_are_near(family, precision):
    if precision == "bf16" and not HAS_BF16:
        pytest.skip("this processor has no bf16")
    model, ids = build_family_model(family, "BertModel"), draw_ids(family, LENGTHS)
    (found,), (expected,) = start(model, (-1,), precision)(ids), start(model)(ids)
    assert_close(found, expected, within=0.1 * np.abs(expected).max())
    assert np.abs(found - expected).max() > 1e-4


@pytest.mark.skipif(not HAS_BF16, reason="this processor has no bf16")
def test_angles_of_positions_are_not_rounded_to_bf16():
    model = build_family_model("modernbert", "BertModel", max_position_embeddings=1_200)
    with torch.no_grad():
        for layer in model.encoder.layers:  # so that attention depends on positions
            layer.attention.query_key_value.weight *= 3.0
    ids = draw_ids("modernbert", [1_200])
    (found,), (expected,) = start(model, (-1,), "bf16")(ids), start(model)(ids)
    error = np.abs(found - expected)
    assert error[-200:].mean() < 2 * error[:60].mean()  # five times, where angles are rounded


@every_family
def test_the_network_of_an_engine_gives_the_gradients_of_its_logits(family):
    model = build_family_model(family, "BertForSequenceClassification")
    model.classifier.weight.data *= 100.0  # so that texts differ
    engine = start(model)
    network, ids, other = find_network(engine), draw_ids(family, [9]), draw_ids(family, [9], 3)
    found = follow_gradients(network, (other, ids), lambda logits: logits[0, 1], 64)
    change = engine.logits(ids)[0, 1] - engine.logits(other)[0, 1]
    assert abs(change) > 1e-2
    assert_close(found.sum(), change, within=1e-3)
