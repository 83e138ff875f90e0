import json

import pytest

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.nn.block import ACTIVATIONS


def test_the_defaults_are_base():
    assert BertConfig() == BertConfig.preset("base")


def test_unknown_keys_are_kept_and_written_back():
    values = {
        **BertConfig.preset("tiny").to_dict(),
        "id2label": {"0": "no"},
        "torch_dtype": "float32",
    }
    assert BertConfig.from_dict(values, "here").to_dict() == values
    assert json.loads(json.dumps(values)) == values


def test_the_message_names_the_sizes_that_do_not_fit():
    with pytest.raises(SettingsError, match=r"hidden_size \(10\) must be a multiple of .* \(3\)"):
        BertConfig(hidden_size=10, num_attention_heads=3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("pruned_heads", {"1": [0]}),
        ("quantization_config", {"bits": 4}),
        ("model_type", "roberta"),
        ("hidden_act", "swish"),
        ("hidden_size", -1),
        ("hidden_size", 10**12),
        ("hidden_dropout_prob", 1.0),
        ("layer_norm_eps", float("nan")),
        ("pad_token_id", 1),
    ],
)
def test_what_we_do_not_do_is_refused_by_name(key, value):
    with pytest.raises(CheckpointError, match=key):
        BertConfig.from_dict({key: value}, "config.json")


def test_every_activation_can_be_chosen_and_the_message_lists_them():
    for name in ACTIVATIONS:
        assert BertConfig(hidden_act=name).hidden_act == name
    with pytest.raises(SettingsError, match=f"no activation 'swish'.* {', '.join(ACTIVATIONS)}"):
        BertConfig(hidden_act="swish")


def test_a_preset_that_is_not_there_lists_those_that_are():
    with pytest.raises(SettingsError, match=r"huge.*tiny, mini, small, medium, base, large"):
        BertConfig.preset("huge")


@pytest.mark.parametrize("name", PRESETS)
def test_heads_have_64_features(name):
    config = BertConfig.preset(name)
    assert config.hidden_size == 64 * config.num_attention_heads
