"""Models that read left to right: words, tags and answers are transformers'; labels it refuses."""

import pytest
import torch
import transformers
from tests.closeness import assert_close
from tests.parity.agreement import SIZES, random_batch, randomize
from torch import Tensor

import bertkit
from bertkit import BertConfig

HEADS = {
    "BertLMHeadModel": lambda found: found if isinstance(found, Tensor) else found.logits,
    "BertForTokenClassification": lambda found: (
        found if isinstance(found, Tensor) else found.logits
    ),
    "BertForQuestionAnswering": lambda found: torch.stack([found.start_logits, found.end_logits]),
}


def build(name, folder):
    config = BertConfig(**SIZES, is_decoder=True, num_labels=2)
    ours = getattr(bertkit, name)(config)
    randomize(ours)
    ours.save_pretrained(folder)
    return ours.double().eval(), load(name, folder)


def load(name, folder):
    """Load a folder with a class of transformers."""
    model = getattr(transformers, name).from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"
    )
    return model.eval()


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_scores_of_tokens_agree(name, tmp_path):
    ours, theirs = build(name, tmp_path)
    ids, segments, mask = random_batch([9, 4, 12])
    expected = HEADS[name](theirs(ids, token_type_ids=segments, attention_mask=mask))
    found = HEADS[name](ours(ids, segments, mask))
    is_token = mask.bool()
    if name == "BertForQuestionAnswering":
        found, expected = found.movedim(0, -1), expected.movedim(0, -1)
    assert_close(found[is_token], expected[is_token])


@torch.no_grad()
def test_labels_are_of_the_last_token_so_transformers_refuses_the_folder(tmp_path):
    ours = bertkit.BertForSequenceClassification(BertConfig(**SIZES, is_decoder=True, num_labels=2))
    randomize(ours)
    ours.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        load("BertForSequenceClassification", tmp_path)
    encoder = load("BertModel", tmp_path)
    ids, segments, mask = random_batch([9, 4])
    states = encoder(ids, token_type_ids=segments, attention_mask=mask).last_hidden_state
    last = states[torch.arange(2), mask.sum(dim=1) - 1]
    pooled = encoder.pooler.dense(last).tanh()
    ours = ours.double().eval()
    assert_close(ours(ids, segments, mask), ours.classifier(pooled))
