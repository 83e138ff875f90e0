"""Heads in NumPy give the logits of PyTorch's modules, for every architecture."""

import numpy as np
import pytest
from tests.closeness import assert_close
from tests.parity.agreement import randomize
from tests.unit.inference.small import arrays_of, build_config

from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.inference.engines.openvino_engine import OpenVinoEngine
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.heads import SUMMARY_SCORES, TOKEN_SCORES
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.feature_head import LAYERS
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.packed_ids import PackedIds

IDS = PackedIds.from_sequences(
    [[2, 5, 6, 7, 3], [2, 9, 3], [2, 3], [2, 8, 3]],
    [[0, 0, 1, 1, 1], [0, 0, 0], [0, 0], [0, 1, 1]],
)
ONE = PackedIds.from_single([[2, 5, 6, 7, 3]])
FEATURE_HEADS = [
    {"layers": layers, "scores": scores, "pooling": pooling}
    for layers, scores, pooling in (
        ("last", "sequence", "cls"),
        ("last", "sequence", "mean"),
        ("last_four", "sequence", "max"),
        ("last_four", "token", "cls"),
        ("last", "choice", "mean"),
    )
]


def check(architecture, layers=(-1,), **changes):
    config = build_config(num_hidden_layers=4, **changes)
    model = ARCHITECTURES[architecture].kind(config).eval()
    randomize(model, 0.4)
    weights = arrays_of(model)
    ours = OpenVinoEngine(config, weights, architecture, layers)
    theirs = TorchEngine(model, layers)
    found = ours.logits(IDS)
    assert found.dtype == np.float32
    assert_close(found, theirs.logits(IDS))
    assert_close(ours.logits(ONE), theirs.logits(ONE))


@pytest.mark.parametrize("architecture", sorted({*SUMMARY_SCORES, *TOKEN_SCORES} - {FEATURE_BASED}))
def test_logits_of_each_architecture_agree(architecture):
    labels = {} if architecture == "BertForQuestionAnswering" else {"num_labels": 4}
    check(architecture, **labels)


@pytest.mark.parametrize("head", FEATURE_HEADS)
def test_logits_of_each_head_on_features_agree(head):
    check(FEATURE_BASED, LAYERS[head["layers"]], num_labels=3, feature_head=head)


def test_heads_of_pre_training_agree():
    model = BertForPreTraining(build_config()).eval()
    randomize(model, 0.4)
    weights = arrays_of(model)
    ours, theirs = OpenVinoEngine(model.config, weights, "BertForPreTraining"), TorchEngine(model)
    assert ours.has_pooler
    assert theirs.has_pooler
    assert_close(*(one.pool(one(IDS)[-1], IDS) for one in (ours, theirs)))
    assert_close(ours.score_pairs(IDS), theirs.score_pairs(IDS))
    places = np.array([1, 6, 3])
    (found,), (expected,) = ours.score_words(IDS, places), theirs.score_words(IDS, places)
    assert found.shape == (3, model.config.vocab_size)
    assert_close(found, expected)


@pytest.mark.parametrize("value", [float("nan"), 3e38])
def test_numbers_that_are_not_finite_are_left_to_the_caller(value):
    model = BertForPreTraining(build_config()).eval()
    model.pooler.dense.weight.data.fill_(value)
    model.masked_lm.dense.weight.data.fill_(value)
    engine = OpenVinoEngine(model.config, arrays_of(model), "BertForPreTraining")
    assert not np.isfinite(next(engine.score_words(IDS, np.array([1])))).all()
    # tanh of infinity is 1, and of infinities of both signs, as some kernels add them, NaN
    assert np.isnan(engine.score_pairs(IDS)).any() or np.isfinite(value)
