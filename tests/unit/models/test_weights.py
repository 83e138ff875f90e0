"""Models without memory, and what is drawn for them."""

import torch

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.models.bert.weights import initialize, without_memory


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
    initialize(model, 0.5)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert parameter.eq(1).all(), name
        else:
            assert 0.4 < parameter.abs().max() <= 1.0, name
            assert abs(parameter.mean()) < 0.1, name
