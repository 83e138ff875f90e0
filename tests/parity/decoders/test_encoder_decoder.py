"""Encoder-decoders: scores, losses, gradients and saved folders, held against transformers'."""

import pytest
import torch
import torch.nn.functional as F
from tests.closeness import assert_close, close
from tests.parity import agreement
from tests.parity.agreement import SMALL
from transformers import EncoderDecoderModel as TheirModel

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packing import PackedBatch

SIZES = {
    **SMALL,
    "max_position_embeddings": 24,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SOURCES = [[2, 7, 8, 9, 3], [2, 11, 3], [2, 5, 6, 7, 8, 9, 10, 11, 12, 3]]
TARGETS = [[2, 14, 15], [2, 16, 17, 18, 19, 20, 21], [2, 22]]
LABELS = [[14, 15, 3], [16, 17, 18, 19, 20, 21, 3], [22, 3]]


def build(**joined):
    torch.manual_seed(1)
    config = EncoderDecoderConfig.of(BertConfig(**SIZES), start_id=2, end_id=3, **joined)
    model = EncoderDecoderModel(config).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and "word" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def pad_rows(rows):
    return agreement.pad_rows(rows, max(map(len, rows)))


def load_theirs(model, folder):
    model.save_pretrained(folder)
    theirs, report = TheirModel.from_pretrained(
        folder, output_loading_info=True, dtype=torch.float64, attn_implementation="eager"
    )
    assert {name for name in report["missing_keys"] if "pooler" not in name} == set()
    assert not report["unexpected_keys"]
    return theirs.eval()


def run_theirs(theirs):
    return theirs(
        input_ids=pad_rows(SOURCES),
        attention_mask=pad_rows([[1] * len(row) for row in SOURCES]),
        decoder_input_ids=pad_rows(TARGETS),
        decoder_attention_mask=pad_rows([[1] * len(row) for row in TARGETS]),
    ).logits


@pytest.mark.parametrize(
    "joined", [{}, {"shares_embeddings": True}, {"positions": "sinusoidal"}], ids=str
)
def test_scores_agree(joined, tmp_path):
    model = build(**joined)
    theirs = load_theirs(model, tmp_path)
    ours = model(
        pad_rows(SOURCES),
        pad_rows(TARGETS),
        pad_rows([[1] * len(row) for row in SOURCES]),
        pad_rows([[1] * len(row) for row in TARGETS]),
    )
    mask = pad_rows([[1] * len(row) for row in TARGETS]).bool()
    assert_close(ours[mask], run_theirs(theirs)[mask])


def test_losses_and_gradients_agree(tmp_path):
    model = build()
    theirs = load_theirs(model, tmp_path)
    labels = torch.tensor([word for row in LABELS for word in row])
    loss, _ = model.next_loss(
        PackedBatch.from_single(SOURCES), PackedBatch.from_single(TARGETS), labels, 0.1
    )
    scores = run_theirs(theirs)[pad_rows([[1] * len(row) for row in TARGETS]).bool()]
    their_loss = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=0.1)
    assert_close(loss, their_loss)
    loss.backward()
    their_loss.backward()
    expected = {name: each.grad for name, each in theirs.named_parameters()}
    query = model.decoder.layers[1].cross_attention.query.weight.grad
    there = expected["decoder.bert.encoder.layer.1.crossattention.self.query.weight"]
    assert_close(query, there)
    there = expected["encoder.encoder.layer.0.intermediate.dense.weight"]
    found = model.encoder.layers[0].feed_forward.up.weight.grad
    assert_close(found, there)
    there = expected["decoder.bert.embeddings.word_embeddings.weight"]
    assert_close(model.decoder.embeddings.word.weight.grad, there)


def test_a_folder_of_theirs_is_read(tmp_path):
    model = build()
    theirs = load_theirs(model, tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    again = EncoderDecoderModel.from_pretrained(tmp_path / "theirs").double()
    for (name, one), (_, other) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert one == close(other, "float32"), name
