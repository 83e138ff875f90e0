"""Captured attention against transformers' `output_attentions`, for the same random weights."""

import pytest
import torch
import transformers
from tests import families
from tests.closeness import assert_close
from tests.parity.agreement import SIZES, random_batch, randomize
from transformers import BertConfig as TheirConfig
from transformers import BertModel as TheirModel

from bertkit.interpret.capture import capture_attention
from bertkit.models.bert.encoder import BertModel

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


@pytest.mark.parametrize("family", families.FAMILIES)
@torch.inference_mode()
def test_weights_of_each_family_agree(tmp_path, family):
    folder = families.make_folder(tmp_path, family, with_tokenizer=False)
    theirs = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ours = BertModel.from_pretrained(folder)
    batch = families.random_batch(family, LENGTHS)
    with capture_attention(ours.encoder) as layers:
        ours(batch["input_ids"], batch.get("token_type_ids"), batch["attention_mask"])
    expected = theirs(**batch, output_attentions=True).attentions
    for layer, their_layer in zip(layers, expected, strict=True):
        for sequence, length in enumerate(LENGTHS):
            heads = layer.heads(sequence)
            assert_close(heads.weights, their_layer[sequence, :, :length, :length])
            assert_close(heads.weights @ heads.value, heads.context)
