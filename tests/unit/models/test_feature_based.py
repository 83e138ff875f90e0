import inspect

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.base.errors import SettingsError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.open_model import ARCHITECTURES
from bertkit.nn.packing import PackedBatch

FINE_TUNED = [one.kind for one in ARCHITECTURES.values() if issubclass(one.kind, FineTunedBert)]

BATCH = PackedBatch.from_single([[2, 5, 6, 3], [2, 3], [2, 7, 3]])


def build(**head: object) -> BertFeatureBased:
    torch.manual_seed(0)
    head = {"layers": "last_four", "lstm_hidden": 6, "scores": "token", **head}
    config = build_config(num_hidden_layers=4, num_labels=5, feature_head=head)
    return BertFeatureBased(config).eval()


@pytest.mark.parametrize("lstm_hidden", [None, 6])
@pytest.mark.parametrize(
    ("scores", "shape"), [("token", (9, 5)), ("sequence", (3, 5)), ("choice", (3,))]
)
def test_rows_are_those_of_each_sequence_alone(lstm_hidden, scores, shape):
    model = build(lstm_hidden=lstm_hidden, scores=scores).double()
    found = model.scores(BATCH)
    assert found.shape == shape
    parts = BATCH.input_ids.split(BATCH.lengths)
    alone = [model.scores(PackedBatch.from_single([part.tolist()])) for part in parts]
    assert_close(found, torch.cat(alone))


def test_the_last_four_layers_stand_side_by_side():
    model = build(lstm_hidden=None)
    states = list(model.encoder.hidden_states(BATCH))
    assert_close(model.states(BATCH), torch.cat(states[1:], dim=1))
    assert build(layers="last").states(BATCH).shape == (9, 8)


def test_saved_and_loaded_it_scores_the_same(tmp_path):
    model = build()
    model.save_pretrained(tmp_path)
    loaded = BertFeatureBased.from_pretrained(tmp_path)
    assert torch.equal(loaded.scores(BATCH), model.scores(BATCH))
    assert float(loaded.lstm.weight_hh_l1_reverse.detach().abs().max()) <= 6**-0.5


def test_without_a_description_of_the_head_there_is_no_model():
    with pytest.raises(SettingsError, match="feature_head"):
        BertFeatureBased(BertConfig())


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_tokens_of_a_sequence_are_pooled(pooling):
    model = build(lstm_hidden=None, layers="last", scores="sequence", pooling=pooling)
    tokens = model.states(BATCH)
    parts = tokens.split(BATCH.lengths)
    rows = [part.mean(dim=0) if pooling == "mean" else part.amax(dim=0) for part in parts]
    assert_close(model.summarize(tokens, BATCH), torch.stack(rows))
    expected = model.classifier(torch.stack(rows))
    assert_close(model.scores(BATCH), expected)
    expected.sum().backward()
    assert bool(model.encoder.layers[0].attention.output.weight.grad.abs().max() > 0)


@pytest.mark.parametrize("head", [{"scores": "token"}, {"scores": "sequence", "lstm_hidden": 6}])
def test_only_sequences_without_a_bilstm_are_pooled(head):
    with pytest.raises(SettingsError, match="pooling is for scores per sequence"):
        build(**{"lstm_hidden": None, "pooling": "mean", **head})


@pytest.mark.parametrize("scores", ["token", "sequence", "choice"])
def test_the_model_says_what_it_scores(scores):
    assert build(scores=scores).scored == scores


@pytest.mark.parametrize("kind", FINE_TUNED, ids=lambda kind: kind.__name__)
def test_a_fine_tuned_model_has_all_that_its_bases_declare(kind):
    head = {"layers": "last", "lstm_hidden": None, "scores": "token"}
    model = kind(build_config(num_labels=2, feature_head=head))
    bases = [base for base in kind.__mro__ if base.__module__.startswith("bertkit.")]
    declared = {name for base in bases for name in inspect.get_annotations(base)}
    assert {"encoder", "scored"} <= declared
    assert [name for name in declared if not hasattr(model, name)] == []
