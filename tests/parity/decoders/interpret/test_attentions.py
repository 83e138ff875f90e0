"""Captured attention of an encoder-decoder against transformers' `output_attentions`."""

import torch
from tests.closeness import assert_close
from tests.parity.decoders import test_encoder_decoder as pairs

from bertkit.decoders.cross_attention import Memory
from bertkit.decoders.inspected_model import capture_cross_attention
from bertkit.interpret.capture import capture_attention
from bertkit.nn.packing import PackedBatch


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
