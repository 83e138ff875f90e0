"""Captured attention against transformers' `output_attentions`, for the same random weights."""

import pytest
import torch
from tests.closeness import assert_close
from tests.parity import test_encoder_decoder as pairs
from tests.parity.agreement import SIZES, random_batch, randomize
from transformers import BertConfig as TheirConfig
from transformers import BertModel as TheirModel

from bertkit.decoders.cross_attention import Memory
from bertkit.interpret.capture import capture_attention, capture_cross_attention
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.packing import PackedBatch

LENGTHS = [1, 2, 17, 64]


@pytest.mark.parametrize("is_inference", [True, False])
def test_weights_agree(tmp_path, is_inference):
    theirs = TheirModel(TheirConfig(**SIZES, attn_implementation="eager")).eval()
    randomize(theirs)
    theirs.save_pretrained(tmp_path)
    ours = BertModel.from_pretrained(tmp_path)
    ids, segments, mask = random_batch(LENGTHS)
    with torch.inference_mode(is_inference), capture_attention(ours.encoder) as layers:
        ours(ids, segments, mask)
    with torch.no_grad():
        expected = theirs(ids, mask, segments, output_attentions=True).attentions
    assert len(layers) == len(expected)
    for layer, their_layer in zip(layers, expected, strict=True):
        for sequence, length in enumerate(LENGTHS):
            weights = layer.heads(sequence).weights
            theirs_here = their_layer[sequence, :, :length, :length]
            assert_close(weights, theirs_here)


@torch.inference_mode()
def test_all_attentions_of_an_encoder_decoder_agree(tmp_path):
    model = pairs.build()
    theirs = pairs.load_theirs(model, tmp_path)(
        input_ids=pairs.pad_rows(pairs.SOURCES),
        attention_mask=pairs.pad_rows([[1] * len(row) for row in pairs.SOURCES]),
        decoder_input_ids=pairs.pad_rows(pairs.TARGETS),
        decoder_attention_mask=pairs.pad_rows([[1] * len(row) for row in pairs.TARGETS]),
        output_attentions=True,
    )
    source, target = map(PackedBatch.from_single, (pairs.SOURCES, pairs.TARGETS))
    with (
        capture_attention(model.encoder) as encoder,
        capture_attention(model.decoder) as decoder,
        capture_cross_attention(model.decoder) as cross,
    ):
        model.decoder(target, Memory(model.encoder(source), source, target))
    expected = (theirs.encoder_attentions, theirs.decoder_attentions, theirs.cross_attentions)
    for ours, all_layers in zip((encoder, decoder, cross), expected, strict=True):
        for layer, their_layer in zip(ours, all_layers, strict=True):
            for sequence in range(3):
                weights = layer.heads(sequence).weights
                rows, columns = weights.shape[1:]
                theirs_here = their_layer[sequence, :, :rows, :columns]
                assert_close(weights, theirs_here)
