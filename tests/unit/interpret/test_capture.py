"""What is captured is what the model computed, and capturing changes nothing."""

from itertools import product

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config, build_model

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.cross_attention import Memory
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.interpret.capture import capture_attention, capture_cross_attention, capture_states
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch

IDS = [[2, 5, 7, 3], [2, 6, 3], [2, 9, 10, 11, 8, 3]]


@pytest.fixture(scope="module")
def model():
    return build_model().eval()


@pytest.fixture(scope="module")
def batch():
    return PackedBatch.from_single(IDS)


@torch.inference_mode()
def test_outputs_are_equal_with_and_without(model, batch):
    plain = model.encoder(batch)
    with capture_attention(model.encoder):
        watched = model.encoder(batch)
    assert torch.equal(watched, plain)
    assert torch.equal(model.encoder(batch), plain)


@torch.inference_mode()
def test_weights_make_the_context_that_the_model_computed(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
    assert len(layers) == 2
    for layer in layers:
        for sequence, ids in enumerate(IDS):
            heads = layer.heads(sequence)
            assert heads.query.shape == (2, len(ids), 4)
            assert_close(heads.weights.sum(dim=-1), torch.ones(2, len(ids)))
            assert_close(heads.weights @ heads.value, heads.context)
            assert float(heads.weights.std()) > 0.01  # not all tokens alike


@torch.inference_mode()
def test_query_key_and_value_are_those_of_the_layer(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
    (matrix, bias) = model.encoder.layers[0].attention.query_key_value.parameters()
    tokens = (model.encoder.embeddings(batch) @ matrix.T + bias)[4:7]
    heads = layers[0].heads(1)
    for part, name in enumerate(("query", "key", "value")):
        rows = tokens[:, 8 * part : 8 * part + 8].view(3, 2, 4).transpose(0, 1)
        assert_close(getattr(heads, name), rows)


@torch.inference_mode()
def test_each_pass_is_kept(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
        model.encoder(PackedBatch.from_single(IDS[:1]))
    assert [layer.lengths for layer in layers] == [(4, 3, 6)] * 2 + [(4,)] * 2


@torch.inference_mode()
def test_a_layer_that_computes_first_tokens_only_has_weights_and_no_context(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder.summary_states(batch)
    first, last = (layer.heads(2) for layer in layers)
    assert first.context is not None
    assert last.context is None
    assert last.weights.shape == (2, 6, 6)


def test_no_hook_stays_behind(model, batch):
    with pytest.raises(ZeroDivisionError), capture_attention(model.encoder):
        raise ZeroDivisionError
    hooks = [
        hook
        for module in model.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    ]
    assert hooks == []


def test_gradients_run_through_what_is_captured(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
    (gradient,) = torch.autograd.grad(
        layers[1].heads(0).weights[0, 0, 0], model.encoder.embeddings.word.weight
    )
    assert gradient.abs().sum() > 0


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
        assert heads.is_causal is is_causal
        assert_close(heads.weights.sum(dim=-1), torch.ones(2, length))
        assert_close(heads.weights @ heads.value, heads.context)
        if is_causal:
            assert torch.equal(heads.weights, heads.weights.tril())
            assert heads.scores[0, 0, -1] == -torch.inf
        if length > 1 or others > 1:
            assert float(heads.weights[:, -1].std()) > 0.01


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
