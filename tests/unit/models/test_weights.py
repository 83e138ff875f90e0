"""Models without memory, and what is drawn for them."""

import pytest
import torch

from bertkit.checkpoints.torch_tensors import lazy_tensor, read_tensor
from bertkit.checkpoints.transfer import ANSWERS, unmark_own_head
from bertkit.models.bert.arrays import store_head
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.models.bert.weights import initialize, without_memory

WEIGHT = torch.arange(6.0).reshape(2, 3)
OWN = {"architectures": [BertFeatureBased.__name__], "feature_head": {"scores": "sequence"}}
TAGGER = {**OWN, "feature_head": {"scores": "token"}}
CAUSAL = {"architectures": ["BertForSequenceClassification"], "is_decoder": True}
CAUSAL_TAGGER = {"architectures": ["BertForTokenClassification"], "is_decoder": True}
PLAIN = {"architectures": ["BertForSequenceClassification"]}


def test_a_model_without_memory_has_shapes_and_draws_nothing():
    before = torch.get_rng_state()
    with without_memory():
        model = BertForPreTraining(BertConfig.preset("base", vocab_size=1 << 24))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert model.encoder.embeddings.word.weight.shape == (1 << 24, 768)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_drawn_is_cut_at_two_deviations_and_the_rest_is_plain():
    model = BertForPreTraining(BertConfig.preset("tiny", vocab_size=500))
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 9.0)
    initialize(model, model.config.model_copy(update={"initializer_range": 0.5}))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert parameter.eq(1).all(), name
        else:
            assert 0.4 < parameter.abs().max() <= 1.0, name
            assert abs(parameter.mean()) < 0.1, name


@pytest.mark.parametrize("config", [OWN, TAGGER, CAUSAL])
def test_what_is_marked_is_read_as_it_was(config):
    weight = lazy_tensor(WEIGHT)
    stored = store_head(config, {"classifier.weight": weight, "classifier.bias": weight})
    assert tuple(stored["classifier.weight"].shape) == (2, 1, 3)
    assert (ANSWERS in stored) == (config is TAGGER)
    assert all(tensor.read().shape == tensor.shape for tensor in stored.values())
    read = unmark_own_head(stored)
    assert read.keys() == {"classifier.weight", "classifier.bias"}
    assert read["classifier.weight"].shape == (2, 3)
    assert read_tensor(read["classifier.weight"]).equal(WEIGHT)


@pytest.mark.parametrize("config", [PLAIN, CAUSAL_TAGGER, {}])
def test_heads_that_transformers_computes_alike_are_stored_as_they_are(config):
    tensors = {"classifier.weight": lazy_tensor(WEIGHT)}
    assert store_head(config, tensors) == tensors
