import json

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.nn.packing import PackedBatch

BATCH = PackedBatch.from_single([[2, 5, 6, 3], [2, 3], [2, 7, 3]])


def build(**head: object) -> BertFeatureBased:
    torch.manual_seed(0)
    head = {"layers": "last_four", "scores": "token", **head}
    config = build_config(num_hidden_layers=4, num_labels=5, feature_head=head)
    return BertFeatureBased(config).eval()


@pytest.mark.parametrize(
    ("scores", "shape"), [("token", (9, 5)), ("sequence", (3, 5)), ("choice", (3,))]
)
def test_rows_are_those_of_each_sequence_alone(scores, shape):
    model = build(scores=scores).double()
    found = model.scores(BATCH)
    assert found.shape == shape
    parts = BATCH.input_ids.split(BATCH.lengths)
    alone = [model.scores(PackedBatch.from_single([part.tolist()])) for part in parts]
    assert_close(found, torch.cat(alone))


def test_the_last_four_layers_stand_side_by_side():
    model = build()
    states = list(model.encoder.hidden_states(BATCH))
    assert_close(model.states(BATCH), torch.cat(states[1:], dim=1))
    assert build(layers="last").states(BATCH).shape == (9, 8)


def test_saved_and_loaded_it_scores_the_same(tmp_path):
    model = build()
    model.save_pretrained(tmp_path)
    loaded = BertFeatureBased.from_pretrained(tmp_path)
    assert torch.equal(loaded.scores(BATCH), model.scores(BATCH))


def test_without_a_description_of_the_head_there_is_no_model():
    with pytest.raises(SettingsError, match="feature_head"):
        BertFeatureBased(BertConfig())


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_tokens_of_a_sequence_are_pooled(pooling):
    model = build(layers="last", scores="sequence", pooling=pooling)
    tokens = model.states(BATCH)
    parts = tokens.split(BATCH.lengths)
    rows = [part.mean(dim=0) if pooling == "mean" else part.amax(dim=0) for part in parts]
    assert_close(model.summarize(tokens, BATCH), torch.stack(rows))
    expected = model.classifier(torch.stack(rows))
    assert_close(model.scores(BATCH), expected)
    expected.sum().backward()
    assert bool(model.encoder.layers[0].attention.output.weight.grad.abs().max() > 0)


def test_only_sequences_are_pooled():
    with pytest.raises(SettingsError, match="pooling is for scores per sequence"):
        build(scores="token", pooling="mean")


@pytest.mark.parametrize("kind", [BertFeatureBased, BertModel])
def test_a_saved_head_with_a_bilstm_is_refused_by_name(kind, tmp_path):
    build().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    content["feature_head"]["lstm_hidden"] = None  # as folders of all heads have it
    path.write_text(json.dumps(content))
    assert kind.from_pretrained(tmp_path)
    content["feature_head"]["lstm_hidden"] = 64
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"has a BiLSTM \(lstm_hidden=64\), which isn't"):
        kind.from_pretrained(tmp_path)
