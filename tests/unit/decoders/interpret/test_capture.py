"""Attention of decoders is captured: left to right, and from one text to another."""

from itertools import product

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.cross_attention import Memory
from bertkit.decoders.inspected_model import capture_cross_attention, capture_states
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.interpret.capture import capture_attention
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch

IDS = [[2, 5, 7, 3], [2, 6, 3], [2, 9, 10, 11, 8, 3]]
WRITTEN = [[2, 4, 5], [2, 6, 7, 8, 9], [2, 10]]


def build_encoder_decoder(**joined):
    torch.manual_seed(0)
    config = EncoderDecoderConfig.of(build_config(), start_id=2, end_id=3, **joined)
    return EncoderDecoderModel(config).eval()


def check_heads(layers, shape, *, is_causal):
    """That rows sum to 1, and make the context that the model computed."""
    assert len(layers) == 2
    for layer, sequence in product(layers, range(3)):
        heads = layer.heads(sequence)
        length, others = shape[0][sequence], shape[1][sequence]
        assert heads.weights.shape == (2, length, others)
        assert heads.mask.is_causal is is_causal
        assert_close(heads.weights.sum(dim=-1), torch.ones(2, length))
        assert_close(heads.weights @ heads.value, heads.context)
        if is_causal:
            assert torch.equal(heads.weights, heads.weights.tril())
            assert heads.scores[0, 0, -1] == -torch.inf
        if length > 1 or others > 1:
            assert float(heads.weights[:, -1].std()) > 0.01


@pytest.fixture(scope="module")
def batch():
    return PackedBatch.from_single(IDS)


@torch.inference_mode()
def test_left_to_right_no_token_sees_a_later_one(batch):
    torch.manual_seed(0)
    model = BertLMHeadModel(build_config(is_decoder=True)).eval()
    plain = model.encoder(batch)
    with capture_attention(model.encoder) as layers:
        assert torch.equal(model.encoder(batch), plain)
    lengths = [len(ids) for ids in IDS]
    check_heads(layers, (lengths, lengths), is_causal=True)


@pytest.mark.parametrize("joined", [{}, {"normalizes_first": True}], ids=str)
@torch.inference_mode()
def test_of_an_encoder_decoder_all_three_attentions_are_captured(batch, joined):
    model = build_encoder_decoder(**joined)
    target = PackedBatch.from_single(WRITTEN)

    def run():
        return model.decoder(target, Memory(model.encoder(batch), batch, target))

    plain = run()
    with (
        capture_attention(model.encoder) as encoder,
        capture_attention(model.decoder) as decoder,
        capture_cross_attention(model.decoder) as cross,
        capture_states(model.decoder) as states,
    ):
        assert torch.equal(run(), plain)
    read, written = [len(ids) for ids in IDS], [len(ids) for ids in WRITTEN]
    check_heads(encoder, (read, read), is_causal=False)
    check_heads(decoder, (written, written), is_causal=True)
    check_heads(cross, (written, read), is_causal=False)
    assert [state.shape for state in states] == [(sum(written), 8)] * 3
    assert_close(states[-1], plain)


@torch.inference_mode()
def test_cross_attention_is_of_query_and_key_of_its_layer(batch):
    model = build_encoder_decoder()
    target = PackedBatch.from_single(WRITTEN)
    memory = model.encoder(batch)
    with capture_cross_attention(model.decoder) as layers:
        model.decoder(target, Memory(memory, batch, target))
    keys = model.decoder.layers[1].cross_attention.keys_and_values(memory)[4:7, 0]
    assert_close(layers[1].heads(1).key, keys.transpose(0, 1))
    hooks = [h for m in model.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks)]
    assert hooks == []
