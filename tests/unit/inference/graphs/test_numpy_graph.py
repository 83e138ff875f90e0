"""The description of BERT in NumPy gives what PyTorch's modules give, in float64 too."""

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.parity.agreement import randomize
from tests.unit.inference.small import arrays_of, build_config

from bertkit.inference.graphs.bert import write_layers, write_pooler, write_word_features
from bertkit.inference.graphs.graph import WORDS
from bertkit.inference.graphs.numpy_graph import NumpyGraph
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.packing import PackedBatch

IDS, SEGMENTS = [2, 5, 6, 7, 9, 3], [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "silu", "mish", "relu", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_encoder_and_heads_agree(activation, dtype):
    model = BertForPreTraining(build_config(hidden_act=activation)).to(dtype).eval()
    randomize(model, 0.4)
    weights = arrays_of(model)
    graph = NumpyGraph(model.config, weights)
    embedded = weights[WORDS][IDS]
    embedded = embedded + weights["encoder.embeddings.position.weight"][: len(IDS)]
    embedded = embedded + weights["encoder.embeddings.token_type.weight"][SEGMENTS]
    states = write_layers(graph, embedded, model.config.num_hidden_layers)
    batch = PackedBatch.from_sequences([IDS], [SEGMENTS])
    with torch.no_grad():
        expected = list(model.encoder.hidden_states(batch))
        pooled, words = model.pooler(expected[-1], batch), model.score_words(expected[-1])
    assert_close(states, [each.numpy() for each in expected])
    assert_close(write_pooler(graph, states[-1][:1]), pooled)
    found = graph.score_words(write_word_features(graph, states[-1]))
    assert_close(found, words)
    assert found.dtype == np.dtype(str(dtype).removeprefix("torch."))
